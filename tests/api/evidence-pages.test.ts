/** A run's evidence in pages: the whole chain, each record once, and verified however long it is. */
import { beforeAll, describe, expect, it } from "vitest";
import { EVIDENCE_PAGE_MAX_CHARS } from "#core/limits.ts";
import { type EvidencePage, evidencePage } from "#objects/agent-run/evidence-desk.ts";
import type { RunStore } from "#objects/agent-run/store.ts";
import { call, pluck, seedTenant, type TestTenant } from "../support/client.ts";

let tenant: TestTenant;
let run_id: string;
const RECORDS = 64;

beforeAll(async () => {
	tenant = await seedTenant();
	const goal = { goal: "time", planner: { kind: "external" } };
	run_id = (await call("POST", "/v1/runs", goal, tenant.agent)).body.run_id;
	const tool_calls = Array.from({ length: RECORDS }, (_, n) => ({
		id: `c${n}`,
		type: "function",
		function: { name: "clock_now", arguments: "{}" },
	}));
	const turn = await call("POST", `/v1/runs/${run_id}/decisions`, { content: null, tool_calls }, tenant.agent);
	expect(turn.status).toBe(200);
});

const page = (query: string) => call("GET", `/v1/runs/${run_id}/evidence${query}`, undefined, tenant.agent);

describe("evidence", () => {
	it("comes whole without a limit, and in pages that hang together", async () => {
		const whole = (await page("")).body;
		expect([whole.data.length, whole.next_cursor]).toEqual([RECORDS, null]);
		const found: unknown[] = [];
		for (let cursor: string | null = "0"; cursor !== null; ) {
			const answer = await page(`?limit=25&cursor=${cursor}`);
			const { data, next_cursor, head_hash } = answer.body as Record<string, any>;
			expect(data.length).toBeLessThanOrEqual(25);
			expect(head_hash).toBe(whole.head_hash);
			found.push(...data);
			cursor = next_cursor;
		}
		expect(found).toEqual(whole.data);
		expect(pluck(found, "hash").at(-1)).toBe(whole.head_hash);
	});

	it("ends a page that is exactly full, and answers an empty one past the end", async () => {
		expect((await page(`?limit=${RECORDS}`)).body.next_cursor).toBeNull();
		expect((await page("?cursor=999999")).body).toMatchObject({ data: [], next_cursor: null });
	});

	it.each(["?cursor=-1", "?cursor=x", "?cursor=1e3", "?limit=0", "?limit=1001"])("refuses %s", async (query) => {
		expect((await page(query)).status).toBe(422);
	});

	it("is verified past the first page that is read", async () => {
		const verdict = (await call("GET", `/v1/runs/${run_id}/evidence/verify`, undefined, tenant.agent)).body;
		expect(verdict).toEqual({ valid: true, checked: RECORDS, broken_at: null });
	});
});

describe("a page", () => {
	const storeOf = (...records: readonly { seq: number; input: string }[]): RunStore => {
		const entries = records.map((data) => ({ event: "evidence.recorded", seq: data.seq, data }));
		return { log: { after: (from: number) => entries.filter(({ seq }) => seq > from) } } as unknown as RunStore;
	};

	it("ends where its text would be too long for one message, and never holds none", () => {
		const input = "x".repeat(EVIDENCE_PAGE_MAX_CHARS / 3);
		const store = storeOf(...[1, 2, 3, 4, 5, 6, 7].map((seq) => ({ seq, input })));
		const seqs: number[][] = [];
		for (let at: number | null = 0; at !== null; ) {
			const { data, next_seq }: EvidencePage = evidencePage(store, at, 100);
			seqs.push(data.map(({ seq }) => seq));
			at = next_seq;
		}
		expect(seqs).toEqual([[1, 2], [3, 4], [5, 6], [7]]);
		const huge = storeOf({ seq: 1, input: "x".repeat(2 * EVIDENCE_PAGE_MAX_CHARS) });
		expect(evidencePage(huge, 0, 100).data).toHaveLength(1);
	});
});
