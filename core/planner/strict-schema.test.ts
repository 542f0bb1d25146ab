import { expect, test } from "vitest";
import type { JsonObject } from "../json.ts";
import { strictMode, strictOf } from "./strict-schema.ts";

const closed = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
	type: "object",
	properties,
	required: Object.keys(properties),
	additionalProperties: false,
	...more,
});
const of = (parameters: JsonObject) => ({ name: "f", description: "", parameters });
const fits = (parameters: JsonObject) => strictOf([of(parameters)], "each")[0];
const TEXT = { type: "string" };

test("a closed schema whose fields are all required is sent as strict", () => {
	expect(fits(closed({ a: { ...TEXT, description: "x", enum: ["1", "2"] }, n: { type: "integer", minimum: 0 } }))).toBe(
		true,
	);
	expect(fits(closed({ list: { type: "array", items: closed({ type: TEXT, items: TEXT }) } }))).toBe(true);
});

test.each<[string, JsonObject]>([
	["an optional field", closed({ a: TEXT, b: TEXT }, { required: ["a"] })],
	["a required field twice", closed({ a: TEXT, b: TEXT }, { required: ["a", "a"] })],
	["a required field that is none", closed({ a: TEXT }, { required: ["b"] })],
	["an open object", closed({ a: TEXT }, { additionalProperties: true })],
	["an object that does not say so", { type: "object", properties: { a: TEXT }, required: ["a"] }],
	["an open object inside", closed({ a: { type: "object", properties: {}, required: [] } })],
	["no fields", closed({})],
	["any value", closed({ a: {} })],
	["several types", closed({ a: { type: ["string", "null"] } })],
	["a list of anything", closed({ a: { type: "array" } })],
	["a pattern", closed({ a: { ...TEXT, pattern: "^a" } })],
	["a default", closed({ a: { ...TEXT, default: "x" } })],
	["a reference", closed({ a: { $ref: "#/$defs/x" } }, { $defs: { x: TEXT } })],
	["no object at all", { type: "string" }],
	["a field called like a prototype's", closed({ a: TEXT }, { required: ["constructor"] })],
	["seven levels", closed({ a: closed({ a: closed({ a: closed({ a: closed({ a: closed({ a: TEXT }) }) }) }) }) })],
])("%s is sent as it is, and not as strict", (_, parameters) => {
	expect(fits(parameters)).toBe(false);
});

test("function by function, every one or none, or not at all", () => {
	const both = [of(closed({ a: TEXT })), of({ type: "object" })];
	expect(strictOf(both, "each")).toEqual([true, false]);
	expect(strictOf(both, "all")).toEqual([false, false]);
	expect(strictOf(both.slice(0, 1), "all")).toEqual([true]);
	expect(strictOf(both, "off")).toEqual([false, false]);
	expect(["", "each", "all", "yes", "Each"].map(strictMode)).toEqual(["off", "each", "all", undefined, undefined]);
});
