import { describe, expect, it } from "vitest";
import { TAINT_SOURCES_MAX_CHARS } from "../data/taint.ts";
import { compileExpression } from "../expression.ts";
import type { JsonObject } from "../json.ts";
import { compileTool } from "../registry/compile.ts";
import type { ToolVersion } from "../registry/descriptor.ts";
import { sampleTool } from "../registry/sample-tool.ts";
import type { Draft } from "./draft.ts";
import type { Kit } from "./kit.ts";
import type { RecordedCall } from "./recording.ts";
import { SampleRun } from "./sample-run.ts";
import type { CallRecord } from "./state.ts";
import { taintFlags, taintLabel, taintOf } from "./taint-of.ts";

const IBAN = "DE89 3704 0044 0532 0130 00";
const http = { kind: "http", method: "GET", url: "https://page.test/x" };
const page = sampleTool({ tool_id: "page", name: "page", implementation: http });
const clock = sampleTool({ tool_id: "clock", name: "clock", implementation: { kind: "builtin", name: "echo" } });
const said = (result: unknown, turn = 1, version: ToolVersion = page) =>
	({
		turn,
		definition_hash: version.definition_hash,
		refusal: null,
		result,
		error: null,
		notes: [],
	}) as unknown as CallRecord;

function labels(
	calls: CallRecord[],
	kind = "external",
	words: { turn: number; role: string; content: string }[] = [],
	args: JsonObject = { to: IBAN },
	more: { replay?: object; script?: object; told?: Kit["past"]["told"] } = {},
): string[] {
	const tools = new Map([page, clock].map((version) => [version.definition_hash, compileTool(version)]));
	const kit = {
		tool: (hash: string) => tools.get(hash),
		past: {
			callsOf: (turn: number) => calls.filter((call) => call.turn === turn),
			messages: () => words,
			told: more.told,
		},
	};
	const run = { planner: { kind }, principal: { kind: "user" }, ...more };
	return taintOf({ kit, run } as unknown as Draft, 3, args);
}

describe("taintOf", () => {
	it("looks at what came before the call's turn, and at nobody's own words", () => {
		expect(labels([said({ text: IBAN })])).toEqual(["http:page"]);
		expect(labels([said({ text: IBAN }, 3), said({ text: IBAN }, 4)])).toEqual([]);
		expect(labels([said({ text: IBAN }, 1, clock)])).toEqual([]);
		expect(labels([said({ text: IBAN })], "external", [{ turn: 0, role: "user", content: IBAN }])).toEqual([]);
		expect(labels([said({ text: IBAN })], "external", [{ turn: 0, role: "assistant", content: IBAN }])).toEqual([
			"http:page",
		]);
		expect(labels([said({ text: IBAN })], "external", [{ turn: 2, role: "user", content: IBAN }])).toEqual([
			"http:page",
		]);
		expect(labels([said({ text: IBAN })], "openai", [{ turn: 2, role: "user", content: IBAN }])).toEqual([]);
	});

	it("takes the answer of a caller's function for anybody's words", () => {
		const answered = { ...said({ text: IBAN }), definition_hash: null, tool_id: "caller:look_up", source: "caller" };
		expect(labels([answered as CallRecord])).toEqual(["caller:look_up"]);
		expect(labels([{ ...answered, source: "live" } as CallRecord])).toEqual([]);
		expect(labels([{ ...answered, source: "recorded" } as CallRecord])).toEqual(["caller:look_up"]);
	});

	it("finds short values in JSON that came as text, as a caller's library answers", () => {
		const args = { account: "4711-08" };
		const answered = (result: string): CallRecord =>
			({ ...said(result), definition_hash: null, tool_id: "caller:look_up", source: "caller" }) as CallRecord;
		const twice = JSON.stringify({ body: JSON.stringify([{ account: "471108" }]) });
		for (const text of ['{"account":"4711-08"}', ' [{"account": 471108}]', twice])
			expect(labels([answered(text)], "external", [], args)).toEqual(["caller:look_up"]);
		expect(labels([said({ body: '{"account":"4711-08"}' })], "external", [], args)).toEqual(["http:page"]);
		expect(labels([answered('{"account":"4711-09"}')], "external", [], args)).toEqual([]);
		expect(labels([answered("{not json")], "external", [], args)).toEqual([]);
		// hidden deeper than anybody walks
		const deep = `${"[".repeat(100_000)}"4711-08"${"]".repeat(100_000)}`;
		expect(labels([answered(deep)], "external", [], args)).toEqual(["caller:look_up"]);
	});

	it("takes errors, notes and long members' names for the tool's words, and short names for a schema's", () => {
		const nothing = said(null);
		expect(labels([{ ...nothing, error: { code: "x", message: `use ${IBAN}`, retryable: false } }])).toEqual([
			"http:page",
		]);
		expect(
			labels([{ ...nothing, error: { code: "x", message: "", retryable: false, detail: { to: IBAN } } }]),
		).toHaveLength(1);
		expect(labels([{ ...nothing, notes: [IBAN] }])).toEqual(["http:page"]);
		expect(labels([said({ [IBAN]: 1 })])).toEqual(["http:page"]);
		expect(labels([said({ status: 200 })])).toEqual([]);
	});

	it("says any leaf may be meant of what is too much to look at, and of what only a planner outside can see", () => {
		const much = said("z".repeat(TAINT_SOURCES_MAX_CHARS), 2, page);
		expect(labels([much, said("nothing", 1)])).toEqual(["http:page"]);
		const artifact = said({ artifact_id: "art_1", preview: {} });
		expect([labels([artifact]), labels([artifact], "openai")]).toEqual([["http:page"], []]);
	});

	it("in a replay looks at what the recorded run was told as well, and at nothing that was still to come", () => {
		const call = {
			result: { text: IBAN },
			error: null,
			notes: [],
			taint_label: "http:page",
		} as unknown as RecordedCall;
		const replay = { mode: "live" };
		const told = (at: number) => (n: number) => (n === at ? [null, call] : []);
		const found = (at: number) =>
			labels([said({ text: "" })], "scripted", [], { to: IBAN }, { replay, script: { at: 3 }, told: told(at) });
		// the third decision is played, so two were before it
		expect([0, 1, 2, 3].map(found)).toEqual([["http:page"], ["http:page"], [], []]);
	});

	it("names servers of others by the server, and no more labels in evidence than fit", () => {
		const { descriptor } = page;
		expect(taintLabel({ ...descriptor, tool_id: "mcp:files:tool:read" })).toBe("mcp:files");
		expect(taintFlags(Array.from({ length: 50 }, (_, n) => `http:${n}`))).toHaveLength(20);
	});
});

describe("a tool whose rules do not read it", () => {
	it("never has the past looked at", () => {
		const run = new SampleRun();
		const kit = run.kit.bind(run);
		const past = new Proxy({} as ReturnType<typeof kit>["past"], {
			get: () => {
				throw new Error("the past was read");
			},
		});
		run.kit = () => ({ ...kit(), past });
		run.create();
		run.decide([["note", "a", { to: IBAN }]]);
		expect([...run.calls.values()][0]?.state).toBe("DISPATCHED");
	});

	it.each([
		["size(args_taint) > 0", true],
		['"http:x" in args_taint || args.to == "x"', true],
		['args_taint.exists(label, label.startsWith("mcp:"))', true],
		['args.to == "args_taint"', false],
	])("is told from one that does: %s", (source, reads) => {
		const schema = { type: "object", properties: { to: { type: "string" } }, required: ["to"] };
		const compiled = compileExpression(source, schema, "bool");
		expect(compiled.ok ? compiled.expression.readsTaint : compiled.message).toBe(reads);
		const version = sampleTool({ input_schema: schema, approval: { mode: "when", when: source } });
		expect(compileTool(version).readsTaint).toBe(reads);
	});
});
