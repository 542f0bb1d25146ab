/** JSON text from a column, parsed after loading: what a migration or a person put there is input like any other. */
import type * as z from "zod";

/** The value, or undefined when the text is not JSON or not of this shape. */
export function storedJson<T>(schema: z.ZodType<T>, text: string): T | undefined {
	try {
		const parsed = schema.safeParse(JSON.parse(text));
		return parsed.success ? parsed.data : undefined;
	} catch {
		return undefined;
	}
}
