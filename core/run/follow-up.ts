/**
 * What a descriptor declares for a call that did not succeed: another tool in its place (I6), or a way to learn what
 * became of it (decision 31). Each is a call of its own, frozen and judged anew; nothing follows a possible side effect.
 */
import { STATED, STOOD_IN, type Statement } from "../evidence/statement.ts";
import { compileExpression } from "../expression.ts";
import { isJsonObject, type Json, type JsonObject, own, put } from "../json.ts";
import { APPROVAL_TTL_DEFAULT_MS } from "../limits.ts";
import { judgeTool } from "../policy/permits.ts";
import type { CompiledTool } from "../registry/register.ts";
import { readReference, refersTo } from "../registry/tool-reference.ts";
import { blank, judgeArguments } from "./admit.ts";
import type { Draft } from "./draft.ts";
import { evidenceOf } from "./evidence-of.ts";
import { scopeOf } from "./scope.ts";
import type { CallRecord, World } from "./state.ts";
import { taintOf } from "./taint-of.ts";
import { rest } from "./turn.ts";
import { FINISHED, LIVE } from "./view.ts";

/** For every call that ended badly in this step. */
export function followUps(draft: Draft, world: World): void {
	for (const id of draft.ended.splice(0)) {
		const call = draft.calls.get(id);
		if (call !== undefined) followUp(draft, call, world);
	}
}

function followUp(draft: Draft, call: CallRecord, world: World): void {
	// A stand-in has no stand-in, and a run that was stopped starts nothing more.
	if (call.parent_call_id !== null || FINISHED.has(draft.run.status)) return;
	const { descriptor } = draft.kit.tool(call.definition_hash ?? "").version;
	if (call.state === "OUTCOME_UNKNOWN") {
		onUnknown(draft, call, descriptor.on_unknown, world);
		return;
	}
	const { fallback } = descriptor;
	const acted =
		call.attempts.some((attempt) => attempt.outcome !== "success" && attempt.error !== null) &&
		descriptor.effect !== "read" &&
		!refusedByTool(call);
	if (fallback === undefined || fallback === "snapshot" || acted || draft.turnLeft() === 0) return;
	const tool = reference(draft, fallback.tool_id);
	if (tool === null) {
		note(draft, call, `its fallback \`${fallback.tool_id}\` cannot be used here`);
		return;
	}
	if (tool.version.descriptor.semantic_check !== undefined) {
		note(draft, call, `its fallback \`${fallback.tool_id}\` ${UNCHECKED}`);
		return;
	}
	const args = mapped(draft, call, fallback.args, tool);
	if (typeof args === "string") {
		note(draft, call, `its fallback could not be asked: ${args}`);
		return;
	}
	spawn(draft, call, "fallback", tool, args, world);
}

/** The machine's own calls come up inside a step, where no sandbox runs. */
const UNCHECKED = "has a semantic check, which cannot be run here, and was not asked";

/** A 4xx is an answer: the tool said no, so a write did not act. */
const refusedByTool = (call: CallRecord): boolean => {
	const { http_status = null } = call.attempts.at(-1) ?? {};
	return http_status !== null && http_status >= 400 && http_status < 500;
};

function onUnknown(draft: Draft, call: CallRecord, way: string, world: World): void {
	if (way === "fail") {
		rest(draft, "failed", {
			code: "outcome_unknown",
			message: `the outcome of \`${call.function_name}\` (${call.tool_call_id}) is unknown, and its tool says to stop then`,
		});
	} else if (way === "ask") {
		draft.call({ ...call, unsettled: true });
		draft.due("unsettled", call.tool_call_id, draft.kit.now + APPROVAL_TTL_DEFAULT_MS);
	} else if (way.startsWith("reconcile:") && draft.turnLeft() > 0) {
		const tool = reference(draft, way.slice("reconcile:".length));
		if (tool === null) {
			note(draft, call, "its status tool cannot be used here");
			return;
		}
		if (tool.version.descriptor.semantic_check !== undefined) {
			note(draft, call, `its status tool ${UNCHECKED}`);
			return;
		}
		// What the status tool takes of these is what it is asked with.
		const known: JsonObject = {
			tool_call_id: call.tool_call_id,
			idempotency_key: call.tool_call_id,
			input_hash: call.input_hash,
			arguments: call.frozen,
		};
		const args: JsonObject = {};
		for (const name of Object.keys(properties(tool))) {
			const value = own(known, name) ?? own(call.frozen, name);
			if (value !== undefined) put(args, name, value);
		}
		spawn(draft, call, "reconcile", tool, args, world);
	}
}

const properties = (tool: CompiledTool): JsonObject => {
	const found = own(tool.schema, "properties");
	return isJsonObject(found) ? found : {};
};

/** A tool that the machine may call in another's place: it must be permitted to this principal like any other. */
function reference(draft: Draft, name: string): CompiledTool | null {
	const wanted = readReference(name);
	const tool = [...(draft.exposure?.references ?? []), ...(draft.exposure?.tools ?? [])]
		.filter(({ tool_id }) => tool_id === wanted.tool_id)
		.map(({ definition_hash }) => draft.kit.tool(definition_hash))
		.find(({ version }) => refersTo(wanted, version.descriptor));
	if (tool === undefined) return null;
	return judgeTool(draft.run.authority, tool.version.descriptor).decision === "deny" ? null : tool;
}

/** Arguments of a fallback by its expressions over the failed call's; without any, the same arguments. */
function mapped(
	draft: Draft,
	call: CallRecord,
	args: Readonly<Record<string, string>>,
	tool: CompiledTool,
): JsonObject | string {
	const frozen = call.frozen ?? {};
	if (Object.keys(args).length === 0) return frozen;
	const { input_schema } = draft.kit.tool(call.definition_hash ?? "").version.descriptor;
	const made: JsonObject = {};
	for (const [name, source] of Object.entries(args)) {
		const compiled = compileExpression(source, input_schema as JsonObject, "any");
		const scope = scopeOf(draft, frozen);
		const reads = compiled.ok && compiled.expression.readsTaint;
		const told = reads ? { ...scope, args_taint: taintOf(draft, call.turn, frozen) } : scope;
		const value = compiled.ok ? compiled.expression.evaluate(told) : compiled;
		if (!value.ok) return `argument \`${name}\` of \`${tool.version.descriptor.tool_id}\` has no value`;
		put(made, name, plain(value.value));
	}
	return made;
}

/** CEL's integers are BigInt; JSON has numbers. */
function plain(value: unknown): Json {
	// Beyond 2^53 a number would be another one (decision 27).
	if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
	if (Array.isArray(value)) return value.map(plain);
	if (value instanceof Map) return Object.fromEntries([...value].map(([key, one]) => [String(key), plain(one)]));
	if (typeof value === "object" && value !== null)
		return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]));
	return (value ?? null) as Json;
}

function spawn(
	draft: Draft,
	parent: CallRecord,
	kind: "fallback" | "reconcile",
	tool: CompiledTool,
	args: JsonObject,
	world: World,
): void {
	const { descriptor } = tool.version;
	const planned = { id: parent.provider_call_id, name: descriptor.tool_id, arguments: null };
	const child: CallRecord = {
		...blank(draft, planned, {
			tool_id: descriptor.tool_id,
			function_name: descriptor.tool_id,
			definition_hash: tool.version.definition_hash,
		}),
		turn: parent.turn,
		tool_version: descriptor.version,
		definition_hash: tool.version.definition_hash,
		parent_call_id: parent.tool_call_id,
		source: kind === "fallback" ? "fallback" : "live",
	};
	draft.call({
		...parent,
		state: "PENDING",
		child: { kind, tool_call_id: child.tool_call_id },
		waiting: { reason: "fallback", until: draft.at },
	});
	judgeArguments(draft, child, tool, args, judgeTool(draft.run.authority, descriptor), world);
}

/** Parents whose stand-in or status tool has come to an end take its word. Called whenever the turn is looked at. */
export function resolveChildren(draft: Draft): void {
	for (const parent of [...draft.calls.values()]) {
		if (parent.child === null || parent.state !== "PENDING") continue;
		const child = draft.calls.get(parent.child.tool_call_id);
		if (child === undefined || LIVE.has(child.state)) continue;
		if (parent.child.kind === "fallback") takeFallback(draft, parent, child);
		else takeWord(draft, parent, child);
	}
}

function takeFallback(draft: Draft, parent: CallRecord, child: CallRecord): void {
	const served = child.state === "COMPLETED";
	const said = served
		? `served by the fallback \`${child.tool_id}\``
		: `the fallback \`${child.tool_id}\` did not help: ${child.state}`;
	conclusion(
		draft,
		parent,
		{
			state: served ? "COMPLETED" : parent.attempts.at(-1)?.outcome === "timeout" ? "TIMEOUT" : "FAILED",
			source: served ? "fallback" : parent.source,
			result: served ? child.result : null,
			error: served ? null : parent.error,
			notes: [...parent.notes, ...child.notes, `${said}; the reason was: ${parent.error?.message ?? "unknown"}`],
			data_source: served ? child.tool_id : null,
			data_freshness: served ? "may_be_outdated" : null,
		},
		served ? "success" : "failed",
		said,
		served ? STOOD_IN : undefined,
	);
}

/** The status tool's `happened` (in its result or the body of its answer) settles the call; anything else leaves it unknown. */
function takeWord(draft: Draft, parent: CallRecord, child: CallRecord): void {
	const result = (child.result ?? null) as Json;
	const body = own(result, "body") ?? result;
	const happened = child.state === "COMPLETED" ? own(body, "happened") : undefined;
	const said =
		typeof happened === "boolean"
			? `\`${child.tool_id}\` says that it ${happened ? "took effect" : "did not take effect"}`
			: `\`${child.tool_id}\` could not say what became of it`;
	const notes = [...parent.notes, said];
	if (happened === true) {
		conclusion(
			draft,
			parent,
			{ state: "COMPLETED", result: own(body, "result") ?? null, error: null, notes },
			"success",
			said,
			STATED,
		);
	} else if (happened === false) {
		conclusion(
			draft,
			parent,
			{ state: "FAILED", error: { code: "not_happened", message: said, retryable: true }, notes },
			"failed",
			said,
			STATED,
		);
	} else conclusion(draft, parent, { state: "OUTCOME_UNKNOWN", notes }, "unknown", said);
}

function conclusion(
	draft: Draft,
	call: CallRecord,
	change: Partial<CallRecord>,
	outcome: "success" | "failed" | "unknown",
	reason: string,
	said?: Statement,
): void {
	const ended: CallRecord = { ...call, waiting: null, ...change };
	const moment = { reason, facts: [reason], permission_decision: "allow", ...(said && { said }) } as const;
	const recorded = evidenceOf(draft, ended, outcome, moment);
	draft.call({ ...ended, evidence_id: recorded.evidence_id });
}

function note(draft: Draft, call: CallRecord, text: string): void {
	draft.call({ ...call, notes: [...call.notes, text] });
}
