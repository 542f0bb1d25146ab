import { describe, expect, it } from "vitest";
import { TAINT_SOURCES_MAX_CHARS } from "../data/taint.ts";
import { compileExpression } from "../expression.ts";
import { compileTool } from "../registry/compile.ts";
import type { ToolVersion } from "../registry/descriptor.ts";
import { sampleTool } from "../registry/sample-tool.ts";
import type { Draft } from "./draft.ts";
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
): string[] {
	const tools = new Map([page, clock].map((version) => [version.definition_hash, compileTool(version)]));
	const kit = {
		tool: (hash: string) => tools.get(hash),
		past: { callsOf: (turn: number) => calls.filter((call) => call.turn === turn), messages: () => words },
	};
	const run = { planner: { kind }, principal: { kind: "user" } };
	return taintOf({ kit, run } as unknown as Draft, 3, { to: IBAN });
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
