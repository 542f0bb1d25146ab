/**
 * Fills `{{calls.<provider id>.result.<path>}}` in a scripted decision with results of earlier calls (decision 29).
 * Arguments are parsed before, so a result can become the value of a string leaf and nothing else: it adds no member,
 * and text inside it that looks like a placeholder is never looked at again. Called by core/run for scripted planners.
 *
 * The provider id is the text between `calls.` and the first `.result` before which stands the id of a completed call;
 * it may hold dots, but no braces or line breaks. `path` is keys and array indices joined by dots (`rows.0.name`,
 * `rows[0].name`); without it the whole result is meant. Only own properties are found. Other `{{…}}` stay as they are.
 */
import { wellFormedJson } from "../data/well-formed.ts";
import { isJsonObject, type Json, type JsonObject, own, pointerSegment, put } from "../json.ts";
import { ARGUMENTS_MAX_BYTES, JSON_DEPTH_MAX } from "../limits.ts";
import type { FieldError } from "../refusal.ts";

/** Results of completed calls by the planner's own id; where an id was used twice, the latest. */
export type CallResults = ReadonlyMap<string, Json>;

const PLACEHOLDER = /\{\{\s?(calls\.[^{}\r\n]{1,512})\}\}/gu;
const WHOLE = /^\{\{\s?(calls\.[^{}\r\n]{1,512})\}\}$/u;

export type Filled<T extends Json> =
	| { readonly ok: true; readonly value: T }
	| { readonly ok: false; readonly message: string; readonly errors: FieldError[] };

/** A copy of the arguments with every placeholder filled, or one error per placeholder that leads nowhere. */
export function fillPlaceholders(args: JsonObject, results: CallResults): Filled<JsonObject>;
export function fillPlaceholders(args: Json, results: CallResults): Filled<Json>;
export function fillPlaceholders(args: Json, results: CallResults): Filled<Json> {
	const errors: FieldError[] = [];
	let room = ARGUMENTS_MAX_BYTES;

	function fill(text: string, pointer: string, depth: number): Json {
		const whole = WHOLE.exec(text)?.[1];
		if (whole !== undefined) {
			const value = insert(whole, pointer, depth);
			return value === undefined ? text : value; // null is a value
		}
		// A function as replacement: `$&` in a result must not mean anything.
		return text.replace(PLACEHOLDER, (all, expression: string) => {
			const value = insert(expression, pointer, depth);
			return value === undefined ? all : asText(value);
		});
	}

	function insert(expression: string, pointer: string, depth: number): Json | undefined {
		const value = resolve(expression.trim(), results);
		if (value === undefined) {
			errors.push(missing(expression.trim(), pointer));
			return undefined;
		}
		// A few short placeholders could otherwise multiply a large result without bound.
		room -= asText(value).length;
		if (room < 0) errors.push(oversized(pointer, "too_large", `at most ${ARGUMENTS_MAX_BYTES} bytes`));
		else if (depth + depthOf(value) > JSON_DEPTH_MAX)
			errors.push(oversized(pointer, "too_deep", `at most ${JSON_DEPTH_MAX} levels`));
		else return wellFormedJson(value);
		return undefined;
	}

	function walk(value: Json, pointer: string, depth: number): Json {
		if (typeof value === "string") return value.includes("{{") ? fill(value, pointer, depth) : value;
		if (Array.isArray(value)) return value.map((item, at) => walk(item, `${pointer}/${at}`, depth + 1));
		if (!isJsonObject(value)) return value;
		const copy: JsonObject = {};
		for (const [key, child] of Object.entries(value))
			put(copy, key, walk(child, `${pointer}/${pointerSegment(key)}`, depth + 1));
		return copy;
	}

	const value = walk(args, "", 0);
	return errors.length === 0
		? { ok: true, value }
		: { ok: false, message: messageOf(errors), errors: errors.slice(0, 20) };
}

/** The answer text of a scripted decision: always text, a result that is none goes in as JSON. */
export function fillText(text: string, results: CallResults): Filled<string> {
	const filled = fillPlaceholders(text, results);
	return filled.ok ? { ok: true, value: asText(filled.value) } : filled;
}

const messageOf = (errors: readonly FieldError[]): string =>
	errors
		.map((one) => one.error)
		.slice(0, 3)
		.join("; ");

function resolve(expression: string, results: CallResults): Json | undefined {
	const rest = expression.slice("calls.".length);
	for (let at = rest.indexOf(".result"); at >= 0; at = rest.indexOf(".result", at + 1)) {
		const path = rest.slice(at + ".result".length);
		const result = results.get(rest.slice(0, at));
		if (result !== undefined && /^(?:$|[.[])/u.test(path)) return follow(result, path);
	}
	return undefined;
}

function follow(result: Json, path: string): Json | undefined {
	const steps = path
		.replace(/\[(\d{1,10})\]/gu, ".$1")
		.split(".")
		.slice(1);
	let value: Json | undefined = result;
	for (const step of steps) {
		if (!Array.isArray(value)) value = own(value, step);
		else value = /^(?:0|[1-9]\d{0,9})$/u.test(step) ? value[Number(step)] : undefined;
		if (value === undefined) return undefined;
	}
	return value;
}

const asText = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value));

function depthOf(value: Json): number {
	if (typeof value !== "object" || value === null) return 0;
	let deepest = 0;
	for (const child of Object.values(value)) deepest = Math.max(deepest, depthOf(child));
	return deepest + 1;
}

function missing(expression: string, field: string): FieldError {
	return {
		error: `the placeholder \`${expression}\` leads nowhere`,
		field,
		issue: "unknown_name",
		expected: "`calls.<provider id>.result.<path>` of a completed call",
		hint: "name a call that has completed and a member that its result has",
	};
}

function oversized(field: string, issue: "too_large" | "too_deep", expected: string): FieldError {
	return {
		error: "the filled arguments are too big",
		field,
		issue,
		expected,
		hint: "name a smaller part of the result",
	};
}
