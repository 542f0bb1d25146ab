/**
 * What a call's arguments have taken from results that this run got before (V3): the labels that rules read as
 * `args_taint`. Looked at only for tools whose rules read it, as this goes through everything the run was told. It judges
 * nothing. Called where a call is judged, and again where it starts.
 *
 * Untrusted is every result but a builtin's, errors and notes included: a page, a row, a program's output and an upstream's
 * excuse can all hold a stranger's words. Results of the call's own turn are left out: the planner had not seen them.
 */
import { TAINT_SOURCES_MAX_CHARS, type Taint, taint } from "../data/taint.ts";
import type { Scope } from "../expression.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../json.ts";
import { JSON_DEPTH_MAX } from "../limits.ts";
import { textDepth } from "../planner/arguments.ts";
import type { CompiledTool } from "../registry/compile.ts";
import type { ToolDescriptor } from "../registry/descriptor.ts";
import type { Draft } from "./draft.ts";
import { isModel } from "./is-model.ts";
import type { Kit } from "./kit.ts";
import type { RecordedCall } from "./recording.ts";
import { scopeOf } from "./scope.ts";
import type { CallRecord } from "./state.ts";

/** Members' names shorter than this are a schema's (`status`, `content-type`); a longer one may be text that was put there. */
const NAME_MIN_CHARS = 12;
/** Labels of one call in evidence and audit; rules see all. */
const FLAGS_MAX = 20;

type Source = { readonly strings: string[]; cut: boolean };

/** The scope of a call's rules; with `args_taint` where they read it, and without any work where not. */
export function scopeOfCall(draft: Draft, call: CallRecord, tool: CompiledTool, args: JsonObject): Scope {
	const scope = scopeOf(draft, args);
	return tool.readsTaint ? { ...scope, args_taint: taintOf(draft, call.turn, args) } : scope;
}

/** `taint:<label>`, as evidence, audit and approvers see it. */
export const taintFlags = (labels: readonly string[] = []): string[] =>
	labels.slice(0, FLAGS_MAX).map((label) => `taint:${label}`);

/** Sorted labels, each once. `turn` is the call's: only what came before it counts. */
export function taintOf(draft: Draft, turn: number, args: JsonObject): string[] {
	const found: Taint[] = taint(args, sources(draft, turn), trusted(draft));
	return [...new Set(found.map(({ label }) => label))].sort();
}

/** What a call's result is called; null where nobody but Belay speaks. A caller's function is `caller:<name>`, its word anybody's. */
export function labelOf(
	{ kit }: { readonly kit: Pick<Kit, "tool"> },
	{ source, tool_id, definition_hash }: CallRecord,
): string | null {
	if (definition_hash === null) return source === "caller" || source === "recorded" ? tool_id : null;
	const { descriptor } = kit.tool(definition_hash).version;
	return descriptor.implementation.kind === "builtin" ? null : taintLabel(descriptor);
}

/** `mcp:<server>` for what a server of others answers, else `<kind>:<tool_id>`. */
export function taintLabel({ tool_id, implementation }: ToolDescriptor): string {
	const [, server] = /^mcp:([^:]+):tool:/.exec(tool_id) ?? [];
	return server === undefined ? `${implementation.kind}:${tool_id}` : `mcp:${server}`;
}

/**
 * The user's own words: the request's, and what was said later where a model decides and its owner is no agent. An external
 * planner speaks through the same door, and could otherwise make a page's words its user's by saying them.
 */
function trusted(draft: Draft): string[] {
	const { planner, principal } = draft.run;
	const later = isModel(planner.kind) && principal.kind !== "agent";
	return draft.kit.past
		.messages()
		.filter(({ role, turn }) => (role === "user" || role === "system") && (turn === 0 || later))
		.map(({ content }) => content ?? "");
}

/** Newest first, so that what is too much to look at is the oldest; of that, any leaf may be meant. */
function sources(draft: Draft, turn: number): { label: string; strings: string[]; cut: boolean }[] {
	const found = new Map<string, Source>();
	let room = TAINT_SOURCES_MAX_CHARS;
	const external = draft.run.planner.kind === "external";
	const add = (label: string | null, call: Told, whole = external): void => {
		if (label === null) return;
		const source = found.get(label) ?? { strings: [], cut: false };
		found.set(label, source);
		if (room > 0) {
			const size = gather([call.result as Json, detail(call), [...call.notes]], source.strings);
			room -= size;
			source.cut ||= size === TOO_DEEP;
		} else source.cut = true;
		// A planner outside can read the whole of what the run itself keeps only a preview of.
		source.cut ||= whole && isArtifact(call.result);
	};
	const { past } = draft.kit;
	for (let before = turn - 1; before > 0; before--)
		for (const call of past.callsOf(before)) add(call.refusal === null ? labelOf(draft, call) : null, call);
	// Who decided what a replay plays had read the recorded run's results, whatever the tools say today.
	if (draft.run.replay !== undefined && past.told !== undefined)
		for (let n = draft.run.script.at - 2; n >= 0; n--)
			for (const call of past.told(n)) if (call !== null) add(call.taint_label ?? null, call, true);
	return [...found].map(([label, source]) => ({ label, ...source }));
}

type Told = Pick<RecordedCall, "result" | "error" | "notes">;

/** An upstream's error is told to the planner too. Belay's own codes are not looked at. */
const detail = ({ error }: Told): Json => (error === null ? null : [error.message, (error.detail ?? null) as Json]);

const isArtifact = (result: unknown): boolean => isJsonObject(result) && own(result, "artifact_id") !== undefined;

const TOO_DEEP = Number.POSITIVE_INFINITY;

function jsonIn(text: string): Json | undefined {
	try {
		return JSON.parse(text) as Json;
	} catch {
		return undefined;
	}
}

/** Every text in a value, numbers written out and long members' names among them; answers how much that was. */
function gather(value: Json | undefined, into: string[]): number {
	if (typeof value === "number") return gather(String(value), into);
	if (typeof value === "string") {
		into.push(value);
		// A caller's function and many a server answer JSON as text: a planner reads its values one by one, and so must this.
		const inner = /^\s*[[{]/.test(value) ? jsonIn(value) : undefined;
		if (inner === undefined) return value.length;
		// Nested deeper than anything honest: not walked, so any leaf may be meant.
		return textDepth(value) > JSON_DEPTH_MAX ? TOO_DEEP : value.length + gather(inner, into);
	}
	if (typeof value !== "object" || value === null) return 0;
	let size = 0;
	for (const [name, inner] of Object.entries(value)) {
		if (!Array.isArray(value) && name.length >= NAME_MIN_CHARS) size += gather(name, into);
		size += gather(inner, into);
	}
	return size;
}
