/**
 * Which results are too large to keep with their run (I10, decision 2), and what stands in for one. It measures and cuts;
 * it stores nothing and hides nothing: masking comes before. Called by `adapters/r2/store-large-result.ts`.
 */

import type { Json } from "../json.ts";
import { ARTIFACT_MIN_BYTES, ARTIFACT_PREVIEW_MAX_BYTES } from "../limits.ts";
import { fitJson } from "../planner/fit-json.ts";
import { utf8Bytes } from "./well-formed.ts";

export type ResultLimits = {
	/** UTF-8 bytes of a result's JSON; one with more becomes an artifact. */
	readonly artifact_min_bytes: number;
	/** Of the JSON of a preview. */
	readonly preview_max_bytes: number;
};
export const RESULT_LIMITS: ResultLimits = {
	artifact_min_bytes: ARTIFACT_MIN_BYTES,
	preview_max_bytes: ARTIFACT_PREVIEW_MAX_BYTES,
};

export type LimitedResult =
	| { readonly inline: Json }
	/** `artifact_text`: the whole as JSON, `bytes` of UTF-8. `preview`: its structure with parts left out, no character split. */
	| { readonly artifact_text: string; readonly bytes: number; readonly preview: Json };

export function limitResult(result: Json, limits: ResultLimits = RESULT_LIMITS): LimitedResult {
	const text = JSON.stringify(result);
	// No character takes more than three bytes per UTF-16 unit: most results are measured no further.
	if (text.length * 3 <= limits.artifact_min_bytes) return { inline: result };
	const bytes = utf8Bytes(text);
	if (bytes <= limits.artifact_min_bytes) return { inline: result };
	return { artifact_text: text, bytes, preview: fitJson(result, limits.preview_max_bytes) };
}
