/**
 * Puts a result that is too large to keep with its run into the artifact store, and a reference with a preview in its
 * place (I10). A call that succeeded stays one: what cannot be stored is kept inline while it may be, and said to be cut
 * where it may not. Masks nothing: it is given what its reader may see. Called by the run object after every success.
 */
import { type LimitedResult, limitResult } from "#core/data/result-limits.ts";
import type { Json } from "#core/json.ts";
import { RESULT_MAX_BYTES } from "#core/limits.ts";
import type { InvokeOutcome, Success } from "#core/outcome.ts";
import type { ArtifactStore } from "#core/ports.ts";

export type ResultPlace = { readonly tenant_id: string; readonly run_id: string; readonly tool_call_id: string };

/** What stands in a call's result for one that is an artifact. `reference` is a path of the API. */
export type ArtifactResult = {
	readonly artifact_id: string;
	readonly reference: string;
	readonly bytes: number;
	readonly sha256: string;
	readonly preview: Json;
};

/** Never throws. Anything but a large success comes back as it is. */
export async function storeLargeResult(
	outcome: InvokeOutcome,
	place: ResultPlace,
	artifacts: ArtifactStore,
): Promise<InvokeOutcome> {
	if (outcome.kind !== "success") return outcome;
	const limited = limitResult(outcome.result);
	if ("inline" in limited) return outcome;
	const { artifact_text, bytes, preview } = limited;
	try {
		const text = artifact_text;
		const { artifact_id, sha256 } = await artifacts.put({ ...place, media_type: "application/json", text });
		const reference = `/v1/artifacts/${artifact_id}`;
		const result: ArtifactResult = { artifact_id, reference, bytes, sha256, preview };
		return {
			...outcome,
			result: { ...result },
			artifacts: [artifact_id],
			facts: [...outcome.facts, `result of ${bytes} bytes stored as ${artifact_id}, SHA-256 ${sha256}`],
			notes: [
				...outcome.notes,
				`the result has ${bytes} bytes and is stored whole as an artifact: \`preview\` has the same structure with parts missing`,
			],
		};
	} catch {
		return unstored(outcome, limited);
	}
}

function unstored(outcome: Success, { bytes, preview }: Exclude<LimitedResult, { inline: Json }>): Success {
	const said = `the result has ${bytes} bytes and could not be stored as an artifact`;
	if (bytes <= RESULT_MAX_BYTES) return { ...outcome, notes: [...outcome.notes, `${said}: it is kept with the run`] };
	return {
		...outcome,
		result: { bytes, preview },
		facts: [...outcome.facts, `result of ${bytes} bytes not stored`],
		notes: [...outcome.notes, `${said}: only a preview with parts missing is left of it`],
	};
}
