/**
 * `npm run demo`: the worked case in the terminal, on a running `npm start` or on an instance of its own that is gone
 * afterwards. Two tools run in parallel, a sandbox computes, a person is asked, and the answer comes with its evidence. The
 * planner is the model named by BELAY_PLANNER_API_KEY, or, without a key, a script whose figures are still all computed.
 */
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import type { ApprovalView, RunView } from "#core/run/view.ts";
import { ROOT } from "./local/bundle.ts";
import { BelayClient, type StreamedEvent } from "./local/client.ts";
import { DEMO_GOAL, DEMO_SCRIPT } from "./local/demo-script.ts";
import { type Credentials, readCredentials, stateDir } from "./local/state.ts";

type Instance = { readonly credentials: Credentials; readonly stop: () => Promise<void> };

async function isHealthy(base_url: string): Promise<boolean> {
	try {
		return (await fetch(`${base_url}/healthz`, { signal: AbortSignal.timeout(2_000) })).ok;
	} catch {
		return false;
	}
}

/** Starts an instance in a temporary state directory and waits until it says that it is ready. */
async function ownInstance(): Promise<Instance> {
	const dir = await mkdtemp(join(tmpdir(), "belay-demo-"));
	const child = spawn(process.execPath, [join(ROOT, "ops/start.ts")], {
		env: { ...process.env, BELAY_STATE_DIR: dir, PORT: "0" },
		stdio: ["ignore", "pipe", "inherit"],
	});
	const ended = new Promise<void>((done) => child.once("close", () => done()));
	const stop = async (): Promise<void> => {
		child.kill("SIGTERM");
		await ended;
		await rm(dir, { recursive: true, force: true });
	};
	let output = "";
	const ready = new Promise<boolean>((done) => {
		child.stdout.setEncoding("utf8").on("data", (text: string) => {
			output += text;
			for (const link of text.matchAll(/^ *(decide at \S+)/gm)) console.log(`  (for the approver: ${link[1]})`);
			if (/^ready on /m.test(output)) done(true);
		});
		child.once("close", () => done(false));
	});
	const credentials = (await ready) ? readCredentials(dir) : undefined;
	if (credentials === undefined) {
		await stop();
		throw new Error(`the instance did not start:\n${output}`);
	}
	return { credentials, stop };
}

async function instance(): Promise<Instance> {
	const running = readCredentials(stateDir());
	if (running !== undefined && (await isHealthy(running.base_url)))
		return { credentials: running, stop: async () => undefined };
	console.log("no running instance found; starting one for this demo");
	return ownInstance();
}

const indent = (text: string): string => text.replaceAll("\n", "\n    ");

/** Steps on the way that say nothing to a person. */
const UNREMARKABLE = new Set(["PENDING", "RUNNING"]);

/** One line for what a person would want to see happen. */
function lineOf({ event, data }: StreamedEvent): string | undefined {
	if (event === "turn.started") return `turn ${data.turn}`;
	if (event === "call.state") {
		if (UNREMARKABLE.has(String(data.state))) return undefined;
		const { refusal, error } = data as { refusal: { reason: string } | null; error: { message: string } | null };
		const why = refusal?.reason ?? error?.message;
		return `  ${String(data.tool_id).padEnd(20)} ${data.state}${why === undefined ? "" : `: ${why}`}`;
	}
	if (event === "run.finished") return `run ${data.status}`;
	return undefined;
}

async function watch(client: BelayClient, run_id: string, signal: AbortSignal): Promise<void> {
	try {
		for await (const event of client.events(run_id, signal)) {
			const line = lineOf(event);
			if (line !== undefined) console.log(line);
			if (event.event === "run.finished") return;
		}
	} catch (fault) {
		if (!signal.aborted) throw fault;
	}
}

async function decision(approval: ApprovalView): Promise<"approve" | "deny"> {
	console.log(
		`\napproval needed: ${approval.summary}\n    tool       ${approval.tool_id} ${approval.tool_version} (risk ${approval.risk})\n    arguments  ${JSON.stringify(approval.arguments)}\n    input_hash ${approval.input_hash}`,
	);
	console.log("    the instance has printed a link where the approver could decide in a browser");
	if (!process.stdin.isTTY) {
		console.log("no terminal to ask on: approving as the development approver\n");
		return "approve";
	}
	const prompt = createInterface({ input: process.stdin, output: process.stdout });
	const said = await prompt.question("approve this call? [y/n] ");
	prompt.close();
	return /^y(es)?$/i.test(said.trim()) ? "approve" : "deny";
}

/** Follows the run to its end; whenever it waits for a person, asks one. */
async function play(client: BelayClient, approver: BelayClient, created: RunView): Promise<RunView> {
	let run = created;
	let seen = 0;
	while (!["completed", "failed", "cancelled", "suspended"].includes(run.status)) {
		run = await client.rested(run.run_id, seen);
		if (run.status !== "awaiting_approval") continue;
		for (const approval of run.pending_approvals)
			await approver.decide(approval, await decision(approval), "decided in the demo");
		seen = run.seq;
	}
	return run;
}

function evidenceTable(
	rows: readonly { tool_id: string; outcome: string; facts: readonly string[]; hash: string }[],
): string {
	const width = Math.max(4, ...rows.map((row) => row.tool_id.length));
	return rows
		.map(
			(row) =>
				`    ${row.tool_id.padEnd(width)}  ${row.outcome.padEnd(8)}  ${row.hash.slice(0, 12)}  ${row.facts.join("; ")}`,
		)
		.join("\n");
}

async function main(): Promise<number> {
	const { credentials, stop } = await instance();
	const watching = new AbortController();
	try {
		const client = new BelayClient(credentials.base_url, credentials.operator_key);
		const approver = new BelayClient(credentials.base_url, credentials.approver_key);
		const managed = (process.env.BELAY_PLANNER_API_KEY ?? "") !== "";
		console.log(`instance  ${credentials.base_url}`);
		console.log(
			managed
				? `planner   the model of ${process.env.BELAY_PLANNER_BASE_URL ?? "the configured provider"}`
				: "planner   scripted: BELAY_PLANNER_API_KEY is not set, so no model is asked",
		);
		console.log(`question  ${DEMO_GOAL}\n`);
		const run = await client.createRun({
			goal: DEMO_GOAL,
			planner: managed ? { kind: "openai" } : { kind: "scripted", script: DEMO_SCRIPT },
		});
		const progress = watch(client, run.run_id, watching.signal);
		const ended = await play(client, approver, run);
		await Promise.race([progress, new Promise((done) => setTimeout(done, 2_000).unref())]);
		const [evidence, verified] = await Promise.all([client.evidence(run.run_id), client.verify(run.run_id)]);
		console.log(
			`\nanswer\n    ${indent(ended.answer ?? `none: the run ${ended.status}${ended.error === null ? "" : ` (${ended.error.message})`}`)}`,
		);
		console.log(`\nevidence of ${ended.run_id}\n${evidenceTable(evidence.data)}`);
		console.log(
			`\nverify    ${verified.valid ? `the chain of ${verified.checked} records is intact and signed` : `broken at ${verified.broken_at}`}`,
		);
		return ended.status === "completed" && verified.valid ? 0 : 1;
	} finally {
		watching.abort();
		await stop();
	}
}

try {
	process.exitCode = await main();
} catch (fault) {
	console.error(fault instanceof Error ? fault.message : String(fault));
	process.exitCode = 1;
}
