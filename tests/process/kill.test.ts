/**
 * `kill -9` of everything, again and again, while runs wait, act, back off and write their index: nothing is lost and
 * nothing is done twice. KILLS says how often (100 for the record in docs/proofs.md); KILL_SEED repeats a sequence.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, describe, expect, it } from "vitest";
import { seeded } from "#core/run/sample-run.ts";
import type { RunView } from "#core/run/view.ts";
import { endAll, Instance, stateFolder, until } from "./instance.ts";
import { KILL_TOOLS, KillRun, registerTools } from "./kill-planner.ts";
import { KillUpstream } from "./kill-upstream.ts";

const KILLS = Number(process.env.KILLS ?? "12");
const SEED = Number(process.env.KILL_SEED ?? "1");
const RUNS_PER_LIFE = 3;
/** From a life's first request to its end, at most. Long enough for calls to be under way, short enough to cut them. */
const LIFE_MS = 2_500;

let upstream: KillUpstream;
afterAll(async () => {
	await endAll();
	upstream?.close();
});

/** Requests that a kill may cut: their errors are the point of the exercise. */
async function unlessKilled(isDead: () => boolean, work: () => Promise<unknown>): Promise<void> {
	try {
		await work();
	} catch (fault) {
		if (!isDead()) throw fault;
	}
}

type IndexRow = { run_id: string; seq: number; hash: string };

/** D1's evidence index as it lies on disk; the instance is dead. */
function evidenceIndex(folder: string): IndexRow[] {
	const files = readdirSync(join(folder, "data"), { recursive: true, encoding: "utf8" }).filter((name) =>
		name.endsWith(".sqlite"),
	);
	for (const file of files) {
		const database = new DatabaseSync(join(folder, "data", file), { readOnly: true });
		try {
			const found = database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'evidence'").get();
			if (found !== undefined)
				return database.prepare("SELECT run_id, seq, hash FROM evidence ORDER BY run_id, seq").all() as IndexRow[];
		} finally {
			database.close();
		}
	}
	throw new Error(`no evidence index in ${files.length} databases`);
}

describe(`${KILLS} times kill -9`, () => {
	it("loses nothing and does nothing twice", { timeout: 120_000 + KILLS * 30_000 }, async () => {
		const pick = seeded(SEED);
		upstream = await KillUpstream.open();
		const env = { BELAY_DEV_UPSTREAMS: upstream.address };
		const folder = stateFolder();
		let instance = await Instance.start(folder, env);
		const { port } = instance;
		await registerTools(instance, upstream.address);
		const runs: KillRun[] = [];
		let underWay = 0;

		for (let kill = 0; kill < KILLS; kill++) {
			let dead = false;
			const life = instance;
			const fresh = Array.from({ length: RUNS_PER_LIFE }, (_, n) => new KillRun(`k${kill}-${n}`, pick));
			runs.push(...fresh);
			const unfinished = runs.filter((run) => !run.decided);
			const work = unfinished.map((run) =>
				unlessKilled(
					() => dead,
					() => run.press(life),
				),
			);
			// Approvals of this life and of earlier ones, at a moment of their own.
			const approving = new Promise((done) => setTimeout(done, pick() * LIFE_MS * 0.8)).then(() =>
				Promise.all(
					runs.slice(-9).map((run) =>
						unlessKilled(
							() => dead,
							() => run.approve(life),
						),
					),
				),
			);
			await new Promise((done) => setTimeout(done, 100 + pick() * LIFE_MS));
			dead = true;
			await life.kill();
			await Promise.all([...work, approving]);
			underWay += upstream.received.length;
			if ((kill + 1) % 10 === 0) console.log(`${kill + 1} kills, ${upstream.received.length} requests`);
			instance = await Instance.start(folder, { ...env, PORT: String(port) });
		}

		const last = instance;
		for (const run of runs) await run.press(last);
		const views = new Map<KillRun, RunView>();
		for (const run of runs) {
			const view = await until(`rest of ${run.run_id}`, 120_000, async () => {
				await run.approve(last);
				const seen = await run.look(last);
				const moving = seen.calls.some((one) =>
					["PENDING", "DISPATCHED", "RUNNING", "AWAITING_APPROVAL"].includes(one.state),
				);
				return seen.status === "awaiting_decision" && !moving ? seen : undefined;
			});
			views.set(run, view);
		}

		const states = new Map<string, number>();
		for (const [run, view] of views) {
			expect(view.calls).toHaveLength(run.asked.length);
			for (const asked of run.asked) {
				const call = run.callOf(view, asked);
				const { keyed, effect } = KILL_TOOLS[asked.tool];
				const requests = upstream.of(asked.id);
				const said = `${asked.id} ${asked.tool} ${call?.state} after ${requests.length} requests`;
				const end = call?.state === "FAILED" ? `FAILED (${call.error?.code})` : (call?.state ?? "");
				states.set(end, (states.get(end) ?? 0) + 1);
				// Whatever was cut: it is done, or nobody knows, and then only where it may not be repeated for certain.
				const ends = effect === "read" ? ["COMPLETED", "FAILED"] : ["COMPLETED", "OUTCOME_UNKNOWN"];
				expect(ends, said).toContain(call?.state);
				if (call?.state === "COMPLETED") expect(requests.length, said).toBeGreaterThan(0);
				if (effect === "write" && !keyed) expect(requests.length, said).toBeLessThanOrEqual(1);
				if (keyed) expect(new Set([call?.tool_call_id, ...requests.map((one) => one.key)]).size, said).toBe(1);
			}
		}

		const own: IndexRow[] = [];
		for (const run of runs) {
			const path = `/v1/runs/${run.run_id}/evidence`;
			const verdict = await last.expect<{ valid: boolean; checked: number }>(
				200,
				"operator_key",
				"GET",
				`${path}/verify`,
			);
			expect(verdict, run.run_id ?? "").toMatchObject({ valid: true });
			expect(verdict.checked).toBeGreaterThanOrEqual(run.asked.length);
			const { data } = await last.expect<{ data: { seq: number; hash: string }[] }>(200, "operator_key", "GET", path);
			own.push(...data.map(({ seq, hash }) => ({ run_id: run.run_id ?? "", seq, hash })));
		}
		own.sort((a, b) => (a.run_id === b.run_id ? a.seq - b.seq : a.run_id < b.run_id ? -1 : 1));
		// The index follows within seconds, by the cursor that survived every kill.
		await until("index in D1", 60_000, () => (evidenceIndex(folder).length >= own.length ? true : undefined));
		await last.kill();
		expect(evidenceIndex(folder).map(({ run_id, seq, hash }) => ({ run_id, seq, hash }))).toEqual(own);
		console.log(
			`${KILLS} kills, seed ${SEED}: ${runs.length} runs, ${[...states].map(([state, n]) => `${n} ${state}`).join(", ")}, ${upstream.received.length} requests, ${own.length} records of evidence`,
		);
		expect(underWay).toBeGreaterThan(0);
	});
});
