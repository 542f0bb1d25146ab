/** What lists look like on the wire, and how to ask for a page of one. */
import * as z from "zod";

/** `next_cursor` is null on the last page. */
export const listOf = <T extends z.ZodType>(item: T) =>
	z.object({ data: z.array(item), next_cursor: z.string().nullable() });

export const pageQuery = z.object({
	cursor: z.string().max(1024).optional(),
	limit: z.coerce.number().int().min(1).max(100).optional(),
});
