/**
 * R3: may this descriptor follow the versions that exist? An incompatible change of the input schema needs a new major,
 * since callers pin `tool_id@major`. It compares what a caller could send, conservatively: a change it cannot read counts
 * as incompatible. Called when a version is published.
 */
import { certainParts } from "../expression-schema.ts";
import { canonicalJson, isJsonObject, type Json, type JsonObject, own, pointerSegment } from "../json.ts";
import { SEMVER, type ToolDescriptor, type ToolVersion } from "./descriptor.ts";

export type PublishVerdict =
	| { readonly outcome: "created" | "same" }
	| { readonly outcome: "version_conflict" | "incompatible_change"; readonly message: string };

/** `existing` are all versions of the tool, offline ones too: a version number is used once for ever. */
export function judgePublish(
	existing: readonly ToolVersion[],
	next: { readonly descriptor: ToolDescriptor; readonly definition_hash: string },
): PublishVerdict {
	const { version } = next.descriptor;
	const twin = existing.find((known) => known.descriptor.version === version);
	if (twin !== undefined && twin.definition_hash === next.definition_hash) return { outcome: "same" };
	if (twin !== undefined)
		return conflict(`version \`${version}\` exists with other content, publish the change as a new version`);
	const major = numbers(version)[0];
	const siblings = existing
		.filter((known) => numbers(known.descriptor.version)[0] === major)
		.sort((one, other) => order(one.descriptor.version, other.descriptor.version));
	const latest = siblings.at(-1);
	if (latest === undefined) return { outcome: "created" };
	if (order(version, latest.descriptor.version) < 0)
		return conflict(`version \`${version}\` is older than \`${latest.descriptor.version}\``);
	const was = latest.descriptor.input_schema as JsonObject;
	const is = next.descriptor.input_schema as JsonObject;
	const change = narrowed({ root: was, node: was }, { root: is, node: is }, "", 0);
	if (change === undefined) return { outcome: "created" };
	return { outcome: "incompatible_change", message: `${change}: publish it as major version ${(major ?? 0) + 1}` };
}

function conflict(message: string): PublishVerdict {
	return { outcome: "version_conflict", message };
}

function numbers(version: string): number[] {
	return (SEMVER.exec(version) ?? []).slice(1).map(Number);
}

/** SemVer precedence of two `MAJOR.MINOR.PATCH`: below 0 when `one` comes first. */
export function order(one: string, other: string): number {
	const theirs = numbers(other);
	return (
		numbers(one)
			.map((part, i) => part - (theirs[i] ?? 0))
			.find((difference) => difference !== 0) ?? 0
	);
}

type Place = { readonly root: JsonObject; readonly node: Json | undefined };

/** In words, what a caller of the old schema could no longer send; undefined when everything still fits. */
function narrowed(was: Place, is: Place, at: string, depth: number): string | undefined {
	const before = certainParts(was.root, was.node);
	const after = certainParts(is.root, is.node);
	if (depth > 32) return undefined;
	const name = at === "" ? "the input" : `\`${at}\``;
	const types = narrowedTypes(before, after);
	if (types) return `${name} accepts fewer types`;
	const values = narrowedValues(before, after);
	if (values) return `${name} accepts fewer values`;
	for (const [keyword, stricter] of BOUNDS) {
		const old = bound(before, keyword);
		const now = bound(after, keyword);
		if (now !== undefined && (old === undefined || stricter(now, old))) return `${name} has a stricter \`${keyword}\``;
	}
	for (const keyword of EXACT) if (differs(before, after, keyword)) return `${name} changes \`${keyword}\``;
	const required = new Set(before.flatMap((part) => names(own(part, "required"))));
	for (const field of after.flatMap((part) => names(own(part, "required"))))
		if (!required.has(field) && !hasDefault(is.root, after, field))
			return `\`${at}/${pointerSegment(field)}\` became required`;
	const newer = properties(after);
	for (const [field, schema] of properties(before)) {
		const where = `${at}/${pointerSegment(field)}`;
		if (!newer.has(field)) return `\`${where}\` was removed or renamed`;
		const change = narrowed(
			{ root: was.root, node: schema },
			{ root: is.root, node: newer.get(field) },
			where,
			depth + 1,
		);
		if (change !== undefined) return change;
	}
	if (closed(after) && !closed(before)) return `${name} no longer takes further fields`;
	const items = [before, after].map((parts) =>
		parts.map((part) => own(part, "items")).find((found) => found !== undefined),
	);
	if (items[0] === undefined && items[1] !== undefined && items[1] !== true) return `${name} has a stricter \`items\``;
	if (items[0] !== undefined && items[1] !== undefined)
		return narrowed({ root: was.root, node: items[0] }, { root: is.root, node: items[1] }, `${at}/*`, depth + 1);
	return undefined;
}

const lower = (now: number, old: number): boolean => now < old;
const higher = (now: number, old: number): boolean => now > old;
const BOUNDS: readonly (readonly [string, (now: number, old: number) => boolean])[] = [
	["minimum", higher],
	["exclusiveMinimum", higher],
	["minLength", higher],
	["minItems", higher],
	["minProperties", higher],
	["maximum", lower],
	["exclusiveMaximum", lower],
	["maxLength", lower],
	["maxItems", lower],
	["maxProperties", lower],
];
/** Any difference may narrow: added or changed is incompatible, dropped is not. */
const EXACT = [
	"pattern",
	"format",
	"multipleOf",
	"uniqueItems",
	"const",
	"anyOf",
	"oneOf",
	"not",
	"if",
	"then",
	"else",
	"prefixItems",
	"contains",
	"minContains",
	"maxContains",
	"propertyNames",
	"patternProperties",
	"dependentRequired",
	"dependentSchemas",
	"unevaluatedProperties",
	"unevaluatedItems",
	"x-belay-kind",
];

const names = (value: Json | undefined): string[] =>
	Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];

function differs(before: readonly JsonObject[], after: readonly JsonObject[], keyword: string): boolean {
	const [old, now] = [before, after].map((parts) =>
		parts.filter((part) => Object.hasOwn(part, keyword)).map((part) => canonicalJson(part[keyword])),
	);
	return (now ?? []).some((text) => !(old ?? []).includes(text));
}

function bound(parts: readonly JsonObject[], keyword: string): number | undefined {
	const found = parts.map((part) => own(part, keyword)).filter((value) => typeof value === "number");
	if (found.length === 0) return undefined;
	return keyword.startsWith("max") || keyword === "exclusiveMaximum" ? Math.min(...found) : Math.max(...found);
}

function typesOf(parts: readonly JsonObject[]): string[] | undefined {
	const type = parts.map((part) => own(part, "type")).find((found) => found !== undefined);
	return type === undefined ? undefined : typeof type === "string" ? [type] : names(type);
}

function narrowedTypes(before: readonly JsonObject[], after: readonly JsonObject[]): boolean {
	const old = typesOf(before);
	const now = typesOf(after);
	if (now === undefined) return false;
	return (
		old === undefined || old.some((type) => !now.includes(type) && !(type === "integer" && now.includes("number")))
	);
}

function narrowedValues(before: readonly JsonObject[], after: readonly JsonObject[]): boolean {
	const [old, now] = [before, after].map(
		(parts) => parts.map((part) => own(part, "enum")).find(Array.isArray) as Json[] | undefined,
	);
	if (now === undefined) return false;
	const allowed = new Set(now.map((value) => canonicalJson(value)));
	return old === undefined || old.some((value) => !allowed.has(canonicalJson(value)));
}

function properties(parts: readonly JsonObject[]): Map<string, Json> {
	const found = new Map<string, Json>();
	for (const part of parts) {
		const map = own(part, "properties");
		if (isJsonObject(map))
			for (const name of Object.keys(map)) if (!found.has(name)) found.set(name, map[name] as Json);
	}
	return found;
}

const hasDefault = (root: JsonObject, parts: readonly JsonObject[], name: string): boolean =>
	certainParts(root, properties(parts).get(name)).some((part) => own(part, "default") !== undefined);
const closed = (parts: readonly JsonObject[]): boolean =>
	parts.some((part) => {
		const more = own(part, "additionalProperties");
		return more !== undefined && more !== true;
	});
