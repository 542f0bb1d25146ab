/**
 * One recorded line of an evaluation file: the tools that a planner was offered and the decisions that it took for one
 * wish, first try first. Reads and checks the file, judges nothing. Called by `npm run eval`.
 */
import { createHash } from "node:crypto";
import * as z from "zod";
import type { Digest } from "#core/json.ts";
import { decision } from "#core/planner/decision.ts";
import type { ToolVersion } from "#core/registry/descriptor.ts";
import { checkDescriptor } from "#core/registry/register.ts";
import { DEMO_TOOLS } from "../seed/tools.ts";

const line = z.strictObject({
	/** Named in reports; its line number otherwise. */
	id: z.string().max(128).optional(),
	/** Descriptors as for `PUT /v1/tools/:tool_id`, or the tools of the development tenant. */
	tools: z.union([z.literal("demo"), z.array(z.record(z.string(), z.unknown())).min(1).max(128)]).default("demo"),
	/** The first try and what followed each refusal. */
	decisions: z.array(decision).min(1).max(16),
	/** This line stands for so many recordings alike. */
	times: z.number().int().min(1).max(1_000_000).default(1),
	/** What is known to come out; anything else is an error of the evaluation. */
	expect: z
		.strictObject({
			/** Repairs until valid: 0 is the first try; null: never. */
			valid_after: z.number().int().min(0).max(15).nullable().optional(),
			/** The first issue of the first refusal. */
			issue: z.string().max(64).optional(),
		})
		.optional(),
});
export type Recording = z.infer<typeof line> & { readonly id: string; readonly versions: readonly ToolVersion[] };

export const sha256: Digest = (text) => createHash("sha256").update(text, "utf8").digest("hex");

/** Every line that is not blank. Throws on the first one that is no recording, naming it. */
export function readRecordings(text: string): Recording[] {
	const known = new Map<string, readonly ToolVersion[]>();
	return text.split("\n").flatMap((source, index): Recording[] => {
		if (source.trim() === "") return [];
		const at = `line ${index + 1}`;
		const parsed = line.safeParse(parse(source, at));
		if (!parsed.success) throw new Error(`${at} is no recording: ${z.prettifyError(parsed.error)}`);
		const key = JSON.stringify(parsed.data.tools);
		const versions = known.get(key) ?? versionsOf(parsed.data.tools === "demo" ? DEMO_TOOLS : parsed.data.tools, at);
		known.set(key, versions);
		return [{ ...parsed.data, id: parsed.data.id ?? at, versions }];
	});
}

function parse(source: string, at: string): unknown {
	try {
		return JSON.parse(source);
	} catch {
		throw new Error(`${at} is not JSON`);
	}
}

function versionsOf(descriptors: readonly unknown[], at: string): ToolVersion[] {
	return descriptors.map((input) => {
		const checked = checkDescriptor(input, sha256);
		if (!checked.ok)
			throw new Error(`${at} has a tool that is not accepted: ${JSON.stringify(checked.errors.slice(0, 5))}`);
		const { descriptor, definition_hash } = checked;
		return {
			descriptor,
			definition_hash,
			status: "online",
			created_at: "1970-01-01T00:00:00.000Z",
			offline_since: null,
		};
	});
}
