/**
 * Two costs of a planner's turn, in plain Node and without any I/O: structural, semantic and security checks of a call with ten
 * fields, and putting a streamed turn together.
 */
import { createHash } from "node:crypto";
import { parseUrl } from "#adapters/http/url.ts";
import { createSseReader } from "#adapters/openai/sse.ts";
import type { Scope } from "#core/expression.ts";
import type { JsonObject } from "#core/json.ts";
import { judgeUrl } from "#core/normalize/address-guard.ts";
import { normalize } from "#core/normalize/normalize.ts";
import { createAssembler } from "#core/planner/assembler.ts";
import { checkDescriptor, compileTool } from "#core/registry/register.ts";
import { percentile, timesOf } from "./load.ts";

const digest = (text: string): string => createHash("sha256").update(text, "utf8").digest("hex");
const word = { type: "string", minLength: 1, maxLength: 200 };
const DESCRIPTOR = {
	tool_id: "bench_booking",
	name: "bench_booking",
	version: "1.0.0",
	description: "Books a room. It does not cancel bookings.",
	category: "interface",
	input_schema: {
		type: "object",
		properties: {
			guest: word,
			email: { type: "string", "x-belay-kind": "email" },
			start_date: { type: "string", pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$" },
			end_date: { type: "string", pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$" },
			room: { type: "string", enum: ["single", "double", "suite"] },
			guests: { type: "integer", minimum: 1, maximum: 8 },
			breakfast: { type: "boolean", default: true },
			tags: { type: "array", items: word, maxItems: 10 },
			callback: { type: "string", format: "uri" },
			attachment: { type: "string", "x-belay-kind": "path" },
		},
		required: ["guest", "email", "start_date", "end_date", "room", "guests"],
		additionalProperties: false,
	},
	implementation: { kind: "builtin", name: "echo" },
	semantic_rules: [
		{ expr: "args.start_date <= args.end_date", field: "/end_date", message: "it ends after it starts" },
	],
};
const ARGUMENTS: JsonObject = {
	guest: "Anne O'Brien",
	email: "anne.obrien@example.com",
	start_date: "2026-12-01",
	end_date: "2026-12-04",
	room: "double",
	guests: 2,
	breakfast: true,
	tags: ["late arrival", "quiet"],
	callback: "https://api.example.com/bookings/done?id=17",
	attachment: "invoices/2026/december.pdf",
};
const SCOPE = {
	args: ARGUMENTS,
	context: {
		principal: { id: "usr_bench", kind: "agent", roles: ["agent_operator"] },
		tenant_id: "tenant_bench",
		session_id: "sess_bench",
		run_id: "run_bench",
		now: 1,
		environment: "bench",
	},
} as Scope;

export type CheckFigures = { readonly p50_us: number; readonly p95_us: number };

/** Validation, one rule and the checks of three marked texts; every round must come out valid. */
export function measureChecks(): CheckFigures {
	const checked = checkDescriptor(DESCRIPTOR, digest);
	if (!checked.ok) throw new Error(`the bench's own descriptor is refused: ${JSON.stringify(checked.errors)}`);
	const { descriptor, definition_hash } = checked;
	const created_at = "2026-01-01T00:00:00.000Z";
	const tool = compileTool({ descriptor, definition_hash, status: "online", created_at, offline_since: null });
	const rules = { own_hosts: ["belay.example"], exemptions: [] };
	const guard = (raw: string) => {
		const parts = parseUrl(raw);
		return parts === undefined ? ({ ok: false, reason: "not_a_url" } as const) : judgeUrl(parts, rules);
	};
	const once = (): void => {
		const normal = normalize(tool, ARGUMENTS, { scope: SCOPE, judgeUrl: guard });
		if (!normal.ok) throw new Error(JSON.stringify(normal.refusal));
	};
	const sorted = timesOf(once);
	return { p50_us: percentile(sorted, 0.5), p95_us: percentile(sorted, 0.95) };
}

/** A turn as providers stream it: reasoning, text, then two calls whose arguments come a few characters at a time. */
function streamedTurn(): { readonly text: string; readonly chunks: readonly unknown[] } {
	const chunks: unknown[] = [];
	const add = (delta: object, finish_reason: string | null = null) =>
		chunks.push({
			id: "chatcmpl-6b1f0c9e-5a4d-4f0e-9a57-2f7f0d3a1c55",
			object: "chat.completion.chunk",
			created: 1_796_000_000,
			model: "bench-model",
			system_fingerprint: "fp_8802369eaa_prod0623_fp8_kvcache",
			choices: [{ index: 0, delta, logprobs: null, finish_reason }],
		});
	for (let n = 0; n < 1_500; n++) add({ reasoning_content: ` thought ${n}` });
	for (let n = 0; n < 500; n++) add({ content: ` word ${n}` });
	for (let index = 0; index < 2; index++) {
		const args = JSON.stringify({ ...ARGUMENTS, note: "deliver to the rear entrance, please. ".repeat(200) });
		const head = { id: `call_${index}`, type: "function", function: { name: "bench_booking", arguments: "" } };
		add({ tool_calls: [{ index, ...head }] });
		for (let at = 0; at < args.length; at += 5)
			add({ tool_calls: [{ index, function: { arguments: args.slice(at, at + 5) } }] });
	}
	add({}, "tool_calls");
	return { text: `${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")}data: [DONE]\n\n`, chunks };
}

export type AssemblerFigures = {
	/** The whole way of a stream as it comes over the wire: events, JSON, putting together. */
	readonly mb_per_second: number;
	/** Putting parsed chunks together alone, counted in what the model wrote and not in the JSON around it. */
	readonly written_mb_per_second: number;
};

export function measureAssembler(): AssemblerFigures {
	const { text, chunks } = streamedTurn();
	const pieces = Array.from({ length: Math.ceil(text.length / 4_096) }, (_, n) =>
		text.slice(n * 4_096, (n + 1) * 4_096),
	);
	const written = chunks.reduce<number>((sum, chunk) => sum + writtenIn(chunk), 0);
	const check = (assembler: ReturnType<typeof createAssembler>): void => {
		const { decision } = assembler.finish();
		if (decision.finish_reason !== "tool_calls" || decision.tool_calls.length !== 2)
			throw new Error("the turn is not whole");
		for (const one of decision.tool_calls) JSON.parse(one.arguments ?? "");
	};
	const assemble = (): void => {
		const assembler = createAssembler(["bench_booking"]);
		for (const chunk of chunks) assembler.push(chunk);
		check(assembler);
	};
	const stream = (): void => {
		const assembler = createAssembler(["bench_booking"]);
		const reader = createSseReader();
		for (const piece of pieces)
			for (const { data } of reader.push(piece)) if (data !== "[DONE]") assembler.push(JSON.parse(data));
		check(assembler);
	};
	return { mb_per_second: speed(text.length, stream), written_mb_per_second: speed(written, assemble) };
}

/** Characters of text, thoughts and arguments in one chunk. */
function writtenIn(chunk: unknown): number {
	const { choices } = chunk as { choices: { delta: Record<string, unknown> }[] };
	const { content, reasoning_content, tool_calls } = choices[0]?.delta ?? {};
	const calls = (tool_calls ?? []) as { function: { arguments: string } }[];
	return [content, reasoning_content, ...calls.map((one) => one.function.arguments)].reduce<number>(
		(sum, text) => sum + (typeof text === "string" ? text.length : 0),
		0,
	);
}

/** MB a second at the median round: a pause of the machine in one of them is not the code's. */
function speed(bytes: number, once: () => void): number {
	for (let n = 0; n < 20; n++) once();
	const times = Array.from({ length: 60 }, () => {
		const began = performance.now();
		once();
		return performance.now() - began;
	}).sort((a, b) => a - b);
	return bytes / 1e6 / (percentile(times, 0.5) / 1_000);
}
