/**
 * `npm run load -- --runs 200 --seconds 60`: many runs at once under external planners, all classes of call mixed, on
 * loopback only. Ends by itself, with 1 when an answer was not what it should be, a run did not come to rest, the databases
 * do not hold what was done, or workerd's memory grows. Figures of a kept run: docs/proofs.md.
 */
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { Client, percentile } from "./load.ts";
import { LoadPlanner, type Tally } from "./load-planner.ts";
import { openLoadWorld } from "./load-world.ts";

/** Start-up, the first compilation and 200 new objects are not growth. */
const WARM_UP_SHARE = 0.25;
/** Median of the last third against the first: a leak of a minute shows, the collector's breathing does not. */
const GROWTH_MAX_RATIO = 1.25;
const INDEX_WAIT_MS = 60_000;

const { values } = parseArgs({
	options: { runs: { type: "string", default: "200" }, seconds: { type: "string", default: "60" } },
});
const lanes = bounded(values.runs, 1_000);
const seconds = bounded(values.seconds, 600);

function bounded(text: string, max: number): number {
	const number = Number(text);
	if (!Number.isSafeInteger(number) || number < 1 || number > max)
		throw new Error(`not a whole number from 1 to ${max}: \`${text}\``);
	return number;
}

const median = (list: readonly number[]): number =>
	percentile(
		[...list].sort((a, b) => a - b),
		0.5,
	);
const count = async (table: string): Promise<number> =>
	(await world.database.prepare(`SELECT count(*) AS n FROM ${table}`).first<{ n: number }>())?.n ?? 0;

const world = await openLoadWorld();
const problems: string[] = [];
try {
	const client = new Client(world.belay, lanes);
	const tally: Tally = { times: new Map(), runs: [], approvals: 0, wrong: [] };
	const loads = [loadavg()[0] ?? 0];
	const memory: number[] = [];
	const began = performance.now();
	const sampling = setInterval(() => memory.push(world.rss()), 500);
	const over = (): boolean => performance.now() - began > seconds * 1_000;
	await Promise.all(
		Array.from({ length: lanes }, (_, name) => new LoadPlanner(client, world.keys, tally, name).work(over)),
	);
	clearInterval(sampling);
	loads.push(loadavg()[0] ?? 0);
	const elapsed = (performance.now() - began) / 1_000;

	const resting = new Map<string, number>();
	let records = 0;
	for (const run_id of tally.runs) {
		const headers = { authorization: `Bearer ${world.keys.agent}` };
		const run = await client.expect<{ status: string }>(200, { method: "GET", path: `/v1/runs/${run_id}`, headers });
		resting.set(run.status, (resting.get(run.status) ?? 0) + 1);
		const path = `/v1/runs/${run_id}/evidence/verify`;
		const chain = await client.expect<{ valid: boolean; checked: number }>(200, { method: "GET", path, headers });
		if (!chain.valid) problems.push(`the chain of ${run_id} does not hold`);
		records += chain.checked;
	}
	client.close();
	for (const status of resting.keys())
		if (status !== "completed") problems.push(`${resting.get(status)} runs are ${status}`);

	const wanted = { runs: tally.runs.length, approvals: tally.approvals, evidence: records };
	const found = { runs: 0, approvals: 0, evidence: 0 };
	for (const end = Date.now() + INDEX_WAIT_MS; Date.now() < end; await new Promise((done) => setTimeout(done, 500))) {
		for (const table of ["runs", "approvals", "evidence"] as const) found[table] = await count(table);
		if (JSON.stringify(found) === JSON.stringify(wanted)) break;
	}
	if (JSON.stringify(found) !== JSON.stringify(wanted))
		problems.push(`D1 has ${JSON.stringify(found)} and should have ${JSON.stringify(wanted)}`);

	const steady = memory.slice(Math.floor(memory.length * WARM_UP_SHARE));
	const third = Math.floor(steady.length / 3);
	const [first, last] = [median(steady.slice(0, third)), median(steady.slice(-third))].map((kib) =>
		Math.round(kib / 1_024),
	) as [number, number];
	if (last > first * GROWTH_MAX_RATIO) problems.push(`workerd grew from ${first} to ${last} MiB`);

	const actions = [...tally.times.values()].reduce((sum, list) => sum + list.length, 0);
	for (const [kind, list] of [...tally.times].sort(([a], [b]) => (a < b ? -1 : 1))) {
		list.sort((a, b) => a - b);
		const [p50, p95, p99] = [0.5, 0.95, 0.99].map((at) => Math.round(percentile(list, at)));
		console.log(
			`${kind.padEnd(11)} ${String(list.length).padStart(6)}   p50 ${p50} ms   p95 ${p95} ms   p99 ${p99} ms`,
		);
	}
	const wrong = new Map<string, number>();
	for (const one of tally.wrong) wrong.set(one, (wrong.get(one) ?? 0) + 1);
	for (const [what, n] of wrong) problems.push(`${n} x ${what}`);
	for (const message of new Set(world.errors)) problems.push(`logged: ${message.slice(0, 300)}`);
	console.log(
		`${lanes} runs at a time for ${elapsed.toFixed(0)} s: ${actions} turns, ${Math.round(actions / elapsed)} per second, ${tally.runs.length} runs, ${tally.approvals} approvals, ${records} records, ${world.upstream()} upstream requests`,
	);
	console.log(
		`memory of workerd ${first} -> ${last} MiB (medians), load average ${loads.map((one) => one.toFixed(1)).join(" -> ")}`,
	);
} finally {
	await world.end();
}
for (const problem of problems) console.error(`FAIL  ${problem}`);
console.log(problems.length === 0 ? "no error" : `${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
