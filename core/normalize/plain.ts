/**
 * The soundness of arguments as data, before any schema: depth, well-formed text, numbers that JSON can say exactly
 * (decision 27). Whatever path arguments come by (planner text, an approver's edit, a chain step), this holds. Called by
 * normalize.
 */
import { type Json, pointerSegment } from "../json.ts";
import { JSON_DEPTH_MAX } from "../limits.ts";
import type { FieldError } from "../refusal.ts";

/** Levels of nesting; a scalar is 0. Counts without recursion, so the deepest value cannot overflow it. */
export function depthOf(value: Json): number {
	let depth = 0;
	let level: Json[] = [value];
	for (;;) {
		const next: Json[] = [];
		for (const node of level)
			if (typeof node === "object" && node !== null) for (const inner of Object.values(node)) next.push(inner);
		if (next.length === 0) return depth;
		depth += 1;
		level = next;
	}
}

/** What makes a value unfit to be frozen; none when it is sound. */
export function unsound(value: Json): FieldError[] {
	if (isSound(value, 0)) return [];
	if (depthOf(value) > JSON_DEPTH_MAX)
		return [
			{
				error: "arguments are nested too deep",
				field: "",
				issue: "too_deep",
				expected: `at most ${JSON_DEPTH_MAX} levels`,
				hint: "flatten the arguments",
			},
		];
	const errors: FieldError[] = [];
	walk(value, "", errors);
	return errors.slice(0, 20);
}

/** The same judgement without saying where: nearly every call is sound. */
function isSound(node: Json, depth: number): boolean {
	if (typeof node === "string") return node.isWellFormed();
	if (typeof node === "number") return Number.isFinite(node) && (!Number.isInteger(node) || Number.isSafeInteger(node));
	if (typeof node !== "object" || node === null) return true;
	if (Array.isArray(node))
		return node.length === 0 || (depth < JSON_DEPTH_MAX && node.every((item) => isSound(item, depth + 1)));
	for (const key of Object.keys(node))
		if (depth >= JSON_DEPTH_MAX || !key.isWellFormed() || !isSound(node[key] as Json, depth + 1)) return false;
	return true;
}

function walk(node: Json, at: string, errors: FieldError[]): void {
	if (typeof node === "number") {
		if (Number.isFinite(node) && !(Number.isInteger(node) && !Number.isSafeInteger(node))) return;
		errors.push({
			error: "the number is too large to be held exactly",
			field: at,
			issue: "integer_out_of_range",
			expected: "an integer between -(2^53-1) and 2^53-1",
			hint: "send as string",
		});
	} else if (typeof node === "string") {
		if (!node.isWellFormed()) errors.push(halfCharacter(at));
	} else if (typeof node === "object" && node !== null) {
		for (const key of Object.keys(node)) {
			const where = `${at}/${pointerSegment(key)}`;
			if (key.isWellFormed()) walk((node as { [key: string]: Json })[key] as Json, where, errors);
			else errors.push(halfCharacter(at));
		}
	}
}

function halfCharacter(field: string): FieldError {
	return {
		error: "text holds half a character",
		field,
		issue: "format_invalid",
		expected: "well-formed Unicode",
		hint: "send the character whole or leave it out",
	};
}
