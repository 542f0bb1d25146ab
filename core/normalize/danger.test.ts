/** The security layer against corpora of attacks and of honest texts that look like them; misses and false hits are listed by name. */
import { describe, expect, it } from "vitest";
import corpora from "../../tests/fixtures/security-corpora.json" with { type: "json" };
import type { JsonObject } from "../json.ts";
import { SQL_TEXT_MAX_CHARS } from "../limits.ts";
import type { DangerKind } from "../registry/schema-keywords.ts";
import { judgeUrl } from "./address-guard.ts";
import { type DangerWorld, flagsOf, judgeText } from "./danger.ts";

/** What `adapters/http/url.ts` does; core's tests import no room above. */
const WORLD: DangerWorld = {
	judgeUrl: (raw) => {
		if (!URL.canParse(raw)) return { ok: false, reason: "not_a_url" };
		const { protocol, hostname, port, username, password } = new URL(raw);
		return judgeUrl({ protocol, hostname, port, username, password, raw }, { own_hosts: [], exemptions: [] });
	},
};
const blocks = (kind: DangerKind, text: string): boolean => judgeText({ kind, pointer: "/v", text }, WORLD).length > 0;
const rate = (wrong: readonly string[], all: readonly string[]): string =>
	`${wrong.length}/${all.length} (${((100 * wrong.length) / all.length).toFixed(1)}%)`;

describe.each(["sql", "shell", "path", "email", "domain"] as const)("texts marked %s", (kind) => {
	const { attack, innocent } = corpora[kind];

	it("are blocked when they are attacks, and only then", () => {
		const missed = attack.filter((text) => !blocks(kind, text));
		const hit = innocent.filter((text) => blocks(kind, text));
		console.info(`${kind}: missed ${rate(missed, attack)}, false positives ${rate(hit, innocent)}`);
		expect({ missed, hit }).toEqual({ missed: [], hit: [] });
		expect(Math.min(attack.length, innocent.length)).toBeGreaterThanOrEqual(12);
	});

	it("known false positives are still hit, or belong with the innocent ones", () => {
		const known = "known_false_positives" in corpora[kind] ? (corpora[kind].known_false_positives as string[]) : [];
		expect(known.filter((text) => !blocks(kind, text))).toEqual([]);
		if (kind === "sql") expect(known.length).toBe(1);
	});

	it("are not repeated in the refusal, which gives no hint how to get through (V3)", () => {
		for (const text of attack.filter((one) => one.length > 12)) {
			const [error] = judgeText({ kind, pointer: "/v", text }, WORLD);
			expect(JSON.stringify(error)).not.toContain(text);
			expect(error).toMatchObject({ issue: "security_violation", field: "/v", hint: "" });
		}
	});

	it("are judged in linear time", () => {
		const start = performance.now();
		const length = kind === "sql" ? SQL_TEXT_MAX_CHARS : 200_000;
		for (const piece of [
			"'",
			'"',
			"$q$",
			"/*",
			"*/",
			"\\",
			"-",
			"..",
			"a@",
			"a.",
			"%25",
			"e'",
			"; ",
			"(",
			"&amp;",
			"\\u002e",
		])
			blocks(kind, piece.repeat(length / piece.length));
		expect(performance.now() - start).toBeLessThan(2_500);
	});
});

describe("texts that are bound or told", () => {
	const flagged = (tool: "sql" | "notify", text: string): boolean =>
		flagsOf(tool, { v: text } as JsonObject, []).length > 0;

	it.each([
		["sql", "sql_value"],
		["notify", "template"],
	] as const)("of a %s tool are flagged when they are attacks, and only then", (tool, name) => {
		const { attack, innocent } = corpora[name];
		const missed = attack.filter((text) => !flagged(tool, text));
		const hit = innocent.filter((text) => flagged(tool, text));
		console.info(`${name}: missed ${rate(missed, attack)}, false positives ${rate(hit, innocent)}`);
		expect({ missed, hit }).toEqual({ missed: [], hit: [] });
	});

	it("are flagged by pointer, each once, at most twenty, and never for a tool that neither binds nor notifies", () => {
		const value = { a: { "b/c": ["x", "' or 1=1 --"] } };
		expect(flagsOf("sql", value, [])).toEqual(["sql_pattern:/a/b~1c/1"]);
		expect(flagsOf("http", value, [])).toEqual([]);
		expect(flagsOf("sql", { v: Array.from({ length: 50 }, () => "' or 1=1 --") }, [])).toHaveLength(20);
		const marked = { kind: "sql", pointer: "/q", text: "select 1 where 'a' or 1=1 --" } as const;
		expect(flagsOf("sql", { q: marked.text }, [marked])).toEqual(["sql_pattern:/q"]);
	});

	it("are flagged by kind where that is worth telling and no reason to block", () => {
		const flags = (kind: DangerKind, text: string): string[] => flagsOf("http", {}, [{ kind, pointer: "/v", text }]);
		expect(flags("shell", "echo $HOME")).toEqual(["shell_expansion:/v"]);
		expect(flags("domain", "p\u0430ypal.com")).toEqual(["mixed_scripts:/v"]);
		expect(flags("email", "a@p\u0430ypal.com")).toEqual(["mixed_scripts:/v"]);
		expect(flags("path", "a/NUL.txt")).toEqual(["windows_device_name:/v"]);
		expect(flags("path", "lpt\u00b9")).toEqual(["windows_device_name:/v"]);
		for (const path of ["null", "console.log", "auxiliary/x", "com10", "icon.png"])
			expect(flags("path", path)).toEqual([]);
		expect(flags("domain", "\u0431\u0430\u043d\u043a.example")).toEqual([]);
	});

	it("are looked at in linear time", () => {
		const start = performance.now();
		for (const piece of ["'", "' or ", "union select ", "; ", "/*", "/**/", "1 or ", "a b ", "((((", "' )", "{{"]) {
			flagged("sql", piece.repeat(200_000 / piece.length));
			flagged("notify", piece.repeat(200_000 / piece.length));
		}
		expect(performance.now() - start).toBeLessThan(2_000);
	});
});
