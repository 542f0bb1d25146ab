/**
 * What type checking does not see in an expression: an optional argument read without `has()` (it would err on a valid
 * call), a `matches` whose pattern is not literal or not safe, nested loops over unrelated lists, functions that build
 * large values. It changes nothing; it answers with the first problem in words. Called by the expression compiler only.
 */
import type { ASTNode } from "@marcbachmann/cel-js";
import { lintPattern } from "./expression-patterns.ts";
import { certainParts, certainType, isCertain, itemSchema, propertySchema } from "./expression-schema.ts";
import type { JsonObject } from "./json.ts";

const LOOPS = new Set(["all", "exists", "exists_one", "map", "filter"]);
/** Not needed by any rule, and able to build values far larger than their input. */
const NO_CALLS = new Set(["join", "json", "bind"]);

/** The longest text that `matches` may run on; the compiler holds arguments to it. */
export const MATCHED_TEXT_MAX_CHARS = 16_384;

type Known = { readonly schema: JsonObject | undefined; readonly path: string };
type World = {
	readonly root: JsonObject;
	/** Paths that `has()` has shown to be there on this branch. */
	readonly present: ReadonlySet<string>;
	/** Loop variables: what their items look like. */
	readonly bound: ReadonlyMap<string, Known>;
	/** Loop variables in force, for the rule on nesting. */
	readonly loop: string | null;
	/** Inside of a field path, whose end has been judged as a whole. */
	readonly inPath?: boolean;
};

/** The first problem, or undefined. Paths are written as in the expression: `args.a.b`. */
export function guardExpression(ast: ASTNode, root: JsonObject): string | undefined {
	return visit(ast, { root, present: new Set(), bound: new Map(), loop: null });
}

function visit(node: ASTNode, given: World): string | undefined {
	const world = given.inPath ? { ...given, inPath: false } : given;
	switch (node.op) {
		case "value":
			return undefined;
		case "id":
			return given.inPath ? undefined : heavy(node, world);
		case ".":
			return (
				(given.inPath ? undefined : heavy(node, world)) ??
				visit(node.args[0], { ...world, inPath: true }) ??
				unguarded(node.args[0], node.args[1], world)
			);
		case "[]": {
			const [holder, key] = node.args;
			const named = key.op === "value" && typeof key.args === "string" ? unguarded(holder, key.args, world) : undefined;
			const whole = given.inPath ? undefined : heavy(node, world);
			return whole ?? visit(holder, { ...world, inPath: true }) ?? visit(key, world) ?? named;
		}
		case "==":
		case "!=":
			// equality of texts ends at their lengths, so comparing each item with one text stays linear
			return firstOf(node.args, (side) => visit(side, { ...world, inPath: typeOf(side, world) === "string" }));
		case "&&":
			return visit(node.args[0], world) ?? visit(node.args[1], shows(node.args[0], true, world));
		case "||":
			return visit(node.args[0], world) ?? visit(node.args[1], shows(node.args[0], false, world));
		case "?:": {
			const [condition, yes, no] = node.args;
			return (
				visit(condition, world) ??
				visit(yes, shows(condition, true, world)) ??
				visit(no, shows(condition, false, world))
			);
		}
		case "call": {
			const [name, given] = node.args;
			if (name === "has") {
				const target = given[0];
				return target?.op === "." ? visit(target.args[0], { ...world, inPath: true }) : "`has()` takes a field";
			}
			return firstProblem(given, world);
		}
		case "rcall":
			return method(node, world);
		default:
			return firstProblem(children(node), world);
	}
}

function method(node: Extract<ASTNode, { op: "rcall" }>, world: World): string | undefined {
	const [name, receiver, given] = node.args;
	if (NO_CALLS.has(name)) return `\`${name}\` is not available`;
	if (name === "matches") {
		const pattern = given[0];
		if (pattern?.op !== "value" || typeof pattern.args !== "string") return "`matches` takes a literal pattern only";
		const verdict = lintPattern(pattern.args);
		if (!verdict.ok) return verdict.message;
		if (rootOf(receiver) === undefined) return "`matches` takes a field";
		if (verdict.max_chars < MATCHED_TEXT_MAX_CHARS) return "pattern has too many repeats that can match the same text";
	}
	if (!LOOPS.has(name) || given[0]?.op !== "id") return visit(receiver, world) ?? firstProblem(given, world);
	const variable = given[0].args;
	// a loop in a loop over something else multiplies: one list of 10,000 would be run 100,000,000 times
	if (world.loop !== null && rangeOf(receiver) !== world.loop)
		return "a loop inside a loop must run over a part of the outer item";
	// `[args.a].all(…)`, `args.a.map(x, args.a).all(…)`: ranges that are larger than the arguments
	if (rangeOf(receiver) === undefined) return "a loop runs over a list of the arguments, or a `filter` of one";
	if (["args", "context", "args_taint"].includes(variable)) return `\`${variable}\` cannot be a loop variable`;
	const list = locate(receiver, world);
	const item = list === undefined ? undefined : itemSchema(certainParts(world.root, list.schema));
	const bound = new Map(world.bound).set(variable, { schema: item, path: variable });
	return visit(receiver, world) ?? firstProblem(given.slice(1), { ...world, bound, loop: variable });
}

function firstProblem(nodes: readonly ASTNode[], world: World): string | undefined {
	return firstOf(nodes, (node) => visit(node, world));
}

function firstOf(nodes: readonly ASTNode[], judge: (node: ASTNode) => string | undefined): string | undefined {
	for (const node of nodes) {
		const problem = judge(node);
		if (problem !== undefined) return problem;
	}
	return undefined;
}

/** Inside a loop, a text or list from outside would be gone through once per item: `args.a.all(x, x in args.a)`. */
function heavy(node: ASTNode, world: World): string | undefined {
	if (world.loop === null || rootOf(node) !== "args") return undefined;
	if (["integer", "number", "boolean"].includes(typeOf(node, world) ?? "")) return undefined;
	return "inside a loop, `args` gives numbers and booleans, and texts to compare with `==`";
}

function typeOf(node: ASTNode, world: World): string | undefined {
	return certainType(certainParts(world.root, locate(node, world)?.schema));
}

function rangeOf(node: ASTNode): string | undefined {
	return node.op === "rcall" && node.args[0] === "filter" ? rangeOf(node.args[1]) : rootOf(node);
}

function unguarded(object: ASTNode, name: string, world: World): string | undefined {
	const holder = locate(object, world);
	if (holder?.schema === undefined) return undefined;
	const path = `${holder.path}.${name}`;
	if (world.present.has(path) || isCertain(world.root, certainParts(world.root, holder.schema), name)) return undefined;
	return `\`${path}\` is optional: guard it with \`has(${path}) && …\` or \`!has(${path}) || …\``;
}

/** Where in the arguments a node looks, when that can be told. */
function locate(node: ASTNode, world: World): Known | undefined {
	if (node.op === "id") return node.args === "args" ? { schema: world.root, path: "args" } : world.bound.get(node.args);
	if (node.op !== "." && node.op !== "[]") return undefined;
	const holder = locate(node.args[0], world);
	if (holder === undefined) return undefined;
	const parts = certainParts(world.root, holder.schema);
	const key = node.op === "." ? node.args[1] : node.args[1].op === "value" ? node.args[1].args : undefined;
	if (typeof key === "string") return { schema: propertySchema(parts, key), path: `${holder.path}.${key}` };
	// an index that is not literal gets a path of its own, so that a look at one item never vouches for another
	const index = key === undefined ? `at ${node.start}` : String(key);
	return { schema: itemSchema(parts), path: `${holder.path}[${index}]` };
}

function rootOf(node: ASTNode): string | undefined {
	if (node.op === "id") return node.args;
	if (node.op === "." || node.op === "[]") return rootOf(node.args[0]);
	return undefined;
}

/** The world in which `node` came out as `truth`: paths that `has()` has then shown are present. */
function shows(node: ASTNode, truth: boolean, world: World): World {
	const present = new Set(world.present);
	const collect = (at: ASTNode, holds: boolean): void => {
		if (at.op === "!_") collect(at.args, !holds);
		else if ((at.op === "&&" && holds) || (at.op === "||" && !holds)) for (const side of at.args) collect(side, holds);
		else if (at.op === "call" && at.args[0] === "has" && holds && at.args[1][0] !== undefined) {
			const found = locate(at.args[1][0], world);
			if (found !== undefined) present.add(found.path);
		}
	};
	collect(node, truth);
	return { ...world, present };
}

function children(node: ASTNode): ASTNode[] {
	const found: ASTNode[] = [];
	const add = (part: unknown): void => {
		if (Array.isArray(part)) for (const inner of part) add(inner);
		else if (typeof part === "object" && part !== null && "op" in part) found.push(part as ASTNode);
	};
	add(node.args);
	return found;
}

/** The top-level arguments that an expression reads, or null when it takes `args` as a whole. */
export function argumentNames(ast: ASTNode): readonly string[] | null {
	const names = new Set<string>();
	const collect = (node: ASTNode): boolean => {
		if (node.op === "id") return node.args !== "args";
		if (node.op === "." && node.args[0].op === "id" && node.args[0].args === "args") {
			names.add(node.args[1]);
			return true;
		}
		return children(node).every(collect);
	};
	return collect(ast) ? [...names] : null;
}

/** Whether an expression reads a variable by name. */
export function reads(ast: ASTNode, name: string): boolean {
	return (ast.op === "id" && ast.args === name) || children(ast).some((node) => reads(node, name));
}
