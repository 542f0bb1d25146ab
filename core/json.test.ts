import { describe, expect, test } from "vitest";
import { atPointer, canonicalJson, own, parseJson, pointerSegment, put, wellFormed } from "./json.ts";

const unsafe = (text: string) => {
	const parsed = parseJson(text);
	return parsed.ok ? parsed.unsafe_integers : parsed.message;
};

describe("parseJson", () => {
	test.each([
		["9007199254740991", []],
		["-9007199254740991", []],
		["9007199254740992", [{ pointer: "", source: "9007199254740992" }]],
		["-9007199254740993", [{ pointer: "", source: "-9007199254740993" }]],
		['{"id":2512292042121000001}', [{ pointer: "/id", source: "2512292042121000001" }]],
		['{"a":[1,{"b/c~d":99999999999999999999}]}', [{ pointer: "/a/1/b~1c~0d", source: "99999999999999999999" }]],
		['{"__proto__":99999999999999999999}', [{ pointer: "/__proto__", source: "99999999999999999999" }]],
		["1e400", [{ pointer: "", source: "1e400" }]],
		["[9007199254740993.0]", [{ pointer: "/0", source: "9007199254740993.0" }]],
		// A whole number in disguise: the exponent is negative and the value is still beyond 2^53.
		["[12345678901234567890e-1]", [{ pointer: "/0", source: "12345678901234567890e-1" }]],
		["[0.1,1e-400,-0,123456.789]", []],
		// A repeated key keeps the last value, for Belay as for whoever approves it; the lost one is not reported.
		['{"a":99999999999999999999,"a":1}', []],
		['{"a":1,"a":99999999999999999999}', [{ pointer: "/a", source: "99999999999999999999" }]],
	])("%s names what cannot be held exactly", (text, expected) => {
		expect(unsafe(text)).toEqual(expected);
	});

	test("results keep the exact digits as strings", () => {
		expect(parseJson('{"id":2512292042121000001,"n":7,"deep":[18446744073709551615]}', "string")).toEqual({
			ok: true,
			value: { id: "2512292042121000001", n: 7, deep: ["18446744073709551615"] },
			unsafe_integers: [
				{ pointer: "/id", source: "2512292042121000001" },
				{ pointer: "/deep/0", source: "18446744073709551615" },
			],
		});
		expect(parseJson("18446744073709551615", "string")).toMatchObject({ ok: true, value: "18446744073709551615" });
	});

	test.each(["", " ", "{", "[1,]", "{'a':1}", "nul", '{"a":1}{"b":2}', '{"a":01}', "NaN", "\u00a0{}", '"\n"'])(
		"%j is not JSON",
		(text) => {
			expect(parseJson(text).ok).toBe(false);
		},
	);

	test("a failure says where and never quotes the text", () => {
		const cut = parseJson('{"password":"hunter2');
		expect(cut).toEqual({ ok: false, message: "not valid JSON: the text ends too early" });
		const broken = parseJson('{"password":"hunter2" x}');
		expect(broken).toEqual({ ok: false, message: "not valid JSON at position 22" });
		expect(JSON.stringify([cut, broken, parseJson("hunter2")])).not.toContain("hunter2");
	});

	test("nesting without end is a value, not a crash", () => {
		expect(parseJson(`${"[".repeat(500_000)}${"]".repeat(500_000)}`).ok).toBe(false);
	});

	test("names of the prototype stay plain data", () => {
		const parsed = parseJson('{"__proto__":{"polluted":true},"constructor":1}');
		if (!parsed.ok) throw new Error(parsed.message);
		expect(Object.keys(parsed.value as object)).toEqual(["__proto__", "constructor"]);
		expect(own(parsed.value, "__proto__")).toEqual({ polluted: true });
		expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
	});
});

describe("pointers and properties", () => {
	const value = { a: [{ "b/c": 1, "~": 2 }], "": 3 };

	test.each([
		["", value],
		["/a/0/b~1c", 1],
		["/a/0/~0", 2],
		["/", 3],
		["/a/00", undefined],
		["/a/-1", undefined],
		["/a/length", undefined],
		["/constructor/name", undefined],
		["/__proto__", undefined],
		["a", undefined],
	])("%j", (pointer, expected) => {
		expect(atPointer(value, pointer)).toEqual(expected);
	});

	test("a segment survives the round trip", () => {
		for (const key of ["a/b", "~", "~1", "~0/", "日本", ""])
			expect(atPointer({ [key]: 1 }, `/${pointerSegment(key)}`)).toBe(1);
	});

	test("put makes an own property of any name", () => {
		const target = {};
		put(target, "__proto__", 1);
		expect(Object.hasOwn(target, "__proto__")).toBe(true);
		expect(canonicalJson(target)).toBe('{"__proto__":1}');
	});
});

test("canonical JSON: order and spelling of numbers do not matter, values do (A22)", () => {
	const canon = (text: string) => canonicalJson(JSON.parse(text));
	expect(canon('{"b":{"y":1.0,"x":[2,1]},"a":1e0}')).toBe(canon('{"a":1,"b":{"x":[2,1],"y":1}}'));
	expect(canon('{"x":[1,2]}')).not.toBe(canon('{"x":[2,1]}'));
	expect(canon('"\\u00e9"')).not.toBe(canon('"e\\u0301"'));
	expect(() => canonicalJson(undefined)).toThrow();
});

test("wellFormed replaces lone surrogates only", () => {
	expect(wellFormed("a\ud83d")).toBe("a\ufffd");
	expect(wellFormed("👍")).toBe("👍");
});
