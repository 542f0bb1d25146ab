/**
 * A1: a grant licenses one frozen call, by tool, call and input together. It knows no session, no tool-wide consent and
 * no equality of input between calls. Single use is the run machine's: taking a grant and starting the call is one step.
 */
export { summarize } from "./summarize.ts";

export type Grant = {
	readonly approval_id: string;
	readonly tool_id: string;
	readonly tool_call_id: string;
	readonly input_hash: string;
	/** ms since the epoch. */
	readonly expires_at: number;
};
export type CallIdentity = { readonly tool_id: string; readonly tool_call_id: string; readonly input_hash: string };

/** All three, exactly; an empty part never matches. Expiry is judged by `isExpired`, with the clock of the transaction. */
export function matches(grant: Grant, call: CallIdentity): boolean {
	return (
		grant.tool_id !== "" &&
		grant.tool_call_id !== "" &&
		grant.input_hash !== "" &&
		grant.tool_id === call.tool_id &&
		grant.tool_call_id === call.tool_call_id &&
		grant.input_hash === call.input_hash
	);
}

/** A grant is good before `expires_at`, not at it. A time that is no number is long past. */
export function isExpired(grant: Pick<Grant, "expires_at">, now: number): boolean {
	return !(now < grant.expires_at);
}
