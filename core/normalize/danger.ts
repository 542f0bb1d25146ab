/**
 * The security layer of normalize (V3): judges each text by what its schema says it is (`x-belay-kind`, `format: uri`). A
 * hit blocks the call and is flagged; no hint says how to get through, since a retry must never repair it. Texts that are
 * safe where they go are flagged at most. It judges texts alone: where a request leads is judged again by the egress, what
 * a program does by the sandbox. Called by `normalize.ts`.
 */
import { type Json, type JsonObject, pointerSegment } from "../json.ts";
import type { FieldError } from "../refusal.ts";
import type { ToolKind } from "../registry/descriptor.ts";
import type { MarkedText } from "../registry/marks.ts";
import { isHostName, mixesScripts } from "./host-name.ts";
import { judgeMailAddress } from "./mail-address.ts";
import { judgePath, namesDevice } from "./path-guard.ts";
import { expandsVariables, judgeShellText } from "./shell-text.ts";
import { judgeSqlText } from "./sql-text.ts";
import { hasSqlPattern, hasTemplateExpression, type TextFlag } from "./text-flags.ts";

export type DangerWorld = {
	/** The address rules of this deployment; `reason` is a frozen word, never the URL. */
	readonly judgeUrl: (raw: string) => { readonly ok: true } | { readonly ok: false; readonly reason: string };
};

/** Flags of one call: enough for a reader of the audit, bounded for the row. */
const FLAGS_MAX = 20;
const POINTER_MAX_CHARS = 200;

/** The refusal's entry for a text that must not be sent; none when it may. Nothing of the text goes into it. */
export function judgeText({ kind, pointer, text }: MarkedText, world: DangerWorld): FieldError[] {
	const reason = danger(kind, text, world);
	if (reason === undefined) return [];
	return [
		{ error: `blocked: ${reason}`, field: pointer, issue: "security_violation", expected: ALLOWED[kind], hint: "" },
	];
}

function danger(kind: MarkedText["kind"], text: string, world: DangerWorld): string | undefined {
	switch (kind) {
		case "url": {
			const verdict = world.judgeUrl(text);
			return verdict.ok ? undefined : verdict.reason;
		}
		case "domain": {
			if (!isHostName(text.replace(/\.$/, ""))) return "not_a_host_name";
			const verdict = world.judgeUrl(`https://${text}/`);
			return verdict.ok ? undefined : verdict.reason;
		}
		case "path": {
			const verdict = judgePath(text);
			return verdict.ok ? undefined : `the path ${verdict.reason}`;
		}
		case "email":
			return judgeMailAddress(text);
		case "sql":
			return judgeSqlText(text);
		case "shell": {
			const reason = judgeShellText(text);
			return reason === undefined ? undefined : `the command ${reason}`;
		}
		case "code":
			// judged where it runs, by the sandbox; patterns in a program give false comfort
			return text.includes("\0") ? "the text holds a NUL character" : undefined;
	}
}

const ALLOWED: { readonly [kind in MarkedText["kind"]]: string } = {
	url: "a public address",
	domain: "a public host name",
	path: "a path below its root",
	email: "one e-mail address",
	sql: "one SQL statement over rows",
	shell: "one simple command",
	code: "text without NUL characters",
};

/**
 * Signs of an attack that block nothing, as `<flag>:<JSON Pointer>`: marked texts by their kind; every text of a tool that
 * binds (`sql`: `O'Brien` is a name, and stays one) or notifies (`{{...}}` would run if somebody made a template of it).
 */
export function flagsOf(tool: ToolKind, args: JsonObject, marked: readonly MarkedText[]): string[] {
	const flags: string[] = [];
	const add = (flag: TextFlag, pointer: string, hit: boolean): void => {
		if (hit && flags.length < FLAGS_MAX) flags.push(`${flag}:${pointer.slice(0, POINTER_MAX_CHARS)}`);
	};
	for (const { kind, pointer, text } of marked) {
		if (kind === "sql") add("sql_pattern", pointer, hasSqlPattern(text));
		else if (kind === "shell") add("shell_expansion", pointer, expandsVariables(text));
		else if (kind === "domain") add("mixed_scripts", pointer, mixesScripts(text));
		else if (kind === "email") add("mixed_scripts", pointer, mixesScripts(text.slice(text.indexOf("@") + 1)));
		else if (kind === "path") add("windows_device_name", pointer, namesDevice(text));
	}
	const bound = tool === "sql";
	if (!bound && tool !== "notify") return flags;
	const seen = new Set(marked.filter(({ kind }) => kind === "sql").map(({ pointer }) => pointer));
	const walk = (node: Json, pointer: string): void => {
		if (typeof node === "string") {
			if (bound) add("sql_pattern", pointer, !seen.has(pointer) && hasSqlPattern(node));
			else add("template_expression", pointer, hasTemplateExpression(node));
		} else if (typeof node === "object" && node !== null)
			for (const key of Object.keys(node)) walk((node as JsonObject)[key] as Json, `${pointer}/${pointerSegment(key)}`);
	};
	walk(args, "");
	return flags;
}
