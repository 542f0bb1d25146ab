/**
 * A call of one of the caller's own functions: judged like any planner's output (whole, parsed without repair, of the
 * function's schema) and then handed to the caller. Nothing here invokes anything; what the caller answers is its word
 * (`answered.ts`). Called where a decision is taken in, where the turn is looked at, and where a run ends.
 */
import { canonicalJson, type JsonObject, own } from "../json.ts";
import { readArguments } from "../planner/arguments.ts";
import { validCall } from "../planner/repair-guard.ts";
import type { FieldError } from "../refusal.ts";
import type { Locale } from "../registry/explain-words.ts";
import { importSchema } from "../registry/import-schema.ts";
import { compileValidator } from "../registry/validator.ts";
import { definitionsOf } from "./caller-functions.ts";
import type { Draft } from "./draft.ts";
import { evidenceOf } from "./evidence-of.ts";
import { iso, type Kit } from "./kit.ts";
import { refuse, refuseCut } from "./refuse.ts";
import type { CallerFunction, CallRecord, Exposure, RunRecord, RunState } from "./state.ts";
import type { CallerCall } from "./view.ts";

/** No tool id begins so (`TOOL_ID`): no record of such a call can be read as one of a governed tool. */
const PREFIX = "caller:";
const callerToolId = (name: string): string => PREFIX + name;
export const isCallerToolId = (tool_id: string): boolean => tool_id.startsWith(PREFIX);

/** What names exactly this call of a caller's function, in this run and in a replay of it. */
export const callerInputHash = ({ tenant_salt, digest }: Kit, name: string, args: JsonObject): string =>
	digest(canonicalJson({ v: 1, tenant_salt, caller_function: name, arguments: args }));

/** The offered function of that name. The caller looks first whether a governed one has it. */
export const callerFunction = (run: RunRecord, exposure: Exposure | null, name: string): CallerFunction | undefined =>
	definitionsOf(run, exposure).find((one) => one.name === name);

export function admitCallerCall(
	draft: Draft,
	call: CallRecord,
	definition: CallerFunction,
	text: string | null,
	cut: boolean,
): CallRecord {
	const named: CallRecord = { ...call, tool_id: callerToolId(definition.name), source: "caller" };
	if (cut) return refuseCut(draft, named);
	const read = readArguments(text);
	if (!read.ok) return refuse(draft, named, "normalize", read.reason, read.errors);
	const { value } = read;
	const given: CallRecord = { ...named, arguments: value, arguments_text: text };
	const validate = validatorOf(definition);
	const errors = validate?.(value, draft.run.locale) ?? [];
	if (errors.length > 0) return refuse(draft, given, "normalize", "validation_failed", errors);
	draft.set({ repair_guard: validCall(draft.run.repair_guard, call.function_name) });
	const waiting: CallRecord = {
		...given,
		frozen: value,
		input_hash: callerInputHash(draft.kit, definition.name, value),
		state: "AWAITING_CALLER",
		notes: validate === null ? ["the arguments were not checked against the function's schema"] : [],
	};
	draft.call(waiting);
	const reason = "handed to the caller, whose function it is";
	const { evidence_id } = evidenceOf(draft, waiting, "waiting", { reason, permission_decision: null });
	const told: CallRecord = { ...waiting, evidence_id };
	draft.call(told);
	return told;
}

type Validate = (args: JsonObject, locale?: Locale) => FieldError[];
const validators = new WeakMap<CallerFunction, { readonly validate: Validate | null }>();

/**
 * Null for a schema that Belay does not read (another draft's words, patterns that may run for ever): the caller's library
 * looks at the arguments as well. Libraries write the draft into `$schema` and use nothing of it that is different.
 */
function validatorOf(definition: CallerFunction): Validate | null {
	const known = validators.get(definition);
	if (known !== undefined) return known.validate;
	const source = { ...definition.parameters };
	if (typeof own(source, "$schema") === "string") delete source.$schema;
	const imported = importSchema(source, "");
	const compiled = imported.errors.length > 0 ? null : compileValidator(imported.schema);
	const validate: Validate | null = compiled === null ? null : (args, locale) => compiled(args, locale);
	validators.set(definition, { validate });
	return validate;
}

/** Everything of the open turn that Belay could do is done: the run rests until its caller answers, or its time is over. */
export function awaitCaller(draft: Draft): void {
	const { run } = draft;
	if (run.status === "awaiting_caller") return;
	// The session's own limit, counted while it rests: its clock stands then (decision 6).
	const until = draft.kit.now + run.limits.session_timeout_ms;
	for (const call of callerCalls(draft)) draft.call({ ...call, waiting: { reason: "caller", until: iso(until) } });
	draft.due("caller", "", until);
	draft.status("awaiting_caller");
}

/** Calls that wait for the caller, in the planner's order. */
export function callerCalls(state: Pick<RunState, "calls">): CallRecord[] {
	return [...state.calls.values()]
		.filter((call) => call.state === "AWAITING_CALLER")
		.sort((a, b) => a.ordinal - b.ordinal);
}

/** The run has ended without their answers. They were handed out: nobody here knows what the caller did with them. */
export function endCallerCalls(draft: Draft, why: string): void {
	for (const call of callerCalls(draft)) {
		draft.dueDone("caller", "");
		const message = `the caller had not answered when the run ended: ${why}`;
		const ended: CallRecord = {
			...call,
			state: "OUTCOME_UNKNOWN",
			waiting: null,
			error: { code: "not_answered", message, retryable: false },
		};
		const { evidence_id } = evidenceOf(draft, ended, "unknown", { reason: message, permission_decision: null });
		draft.call({ ...ended, evidence_id });
	}
}

/** What the caller has to answer, as the outside sees it. */
export function callerCallViews(state: Pick<RunState, "calls">): CallerCall[] {
	return callerCalls(state).map(({ tool_call_id, function_name, arguments: args, waiting }) => ({
		tool_call_id,
		function_name,
		arguments: args,
		expires_at: waiting?.until ?? null,
	}));
}
