/**
 * A governed call as an external planner makes it: POST a decision with one call, get the tool message back. Everything is
 * in between: key, run object, exposure, normalize, freeze, policy, two transactions, invocation, signed evidence, answer.
 */
import type { ApprovalView, RunView } from "#core/run/view.ts";
import { Client, type Figures, measure, timed } from "./load.ts";
import { ASKING_TOOL, type World } from "./world.ts";

/** A run takes 200 turns at most; one turn is left for its end. */
const TURNS_PER_RUN = 190;
type Turn = {
	readonly messages: readonly { readonly final: boolean }[];
	readonly pending_approvals: readonly ApprovalView[];
};

export class Planner {
	readonly #client: Client;
	readonly #key: Record<string, string>;
	readonly #approver: Record<string, string>;

	constructor(world: World, lanes: number) {
		this.#client = new Client(world.belay, lanes);
		this.#key = { authorization: `Bearer ${world.keys.agent}` };
		this.#approver = { authorization: `Bearer ${world.keys.approver}` };
	}

	async newRun(tool: string): Promise<string> {
		const body = {
			goal: "bench",
			tools: [tool],
			planner: { kind: "external" },
			limits: { turns: 200, turn_timeout_ms: 600_000, session_timeout_ms: 3_600_000 },
		};
		const run = await this.#client.expect<RunView>(201, { method: "POST", path: "/v1/runs", headers: this.#key, body });
		return run.run_id;
	}

	decide(run_id: string, tool: string): Promise<Turn> {
		const call = { id: "c1", type: "function", function: { name: tool, arguments: '{"message":"hello"}' } };
		return this.#client.expect<Turn>(200, {
			method: "POST",
			path: `/v1/runs/${run_id}/decisions`,
			headers: this.#key,
			body: { content: null, tool_calls: [call] },
		});
	}

	approve(approval: ApprovalView): Promise<unknown> {
		const { tool_id, tool_call_id, input_hash } = approval;
		const body = { decision: "approve", tool_id, tool_call_id, input_hash };
		return this.#client.expect(200, {
			method: "POST",
			path: `/v1/approvals/${approval.approval_id}/decision`,
			headers: this.#approver,
			body,
		});
	}

	/** The run once it rests later than `after_seq`. */
	rested(run_id: string, after_seq: number): Promise<RunView> {
		return this.#client.expect(200, {
			method: "GET",
			path: `/v1/runs/${run_id}?after_seq=${after_seq}`,
			headers: { ...this.#key, prefer: "wait=20" },
		});
	}

	read(run_id: string): Promise<RunView> {
		return this.#client.expect(200, { method: "GET", path: `/v1/runs/${run_id}`, headers: this.#key });
	}

	close(): void {
		this.#client.close();
	}
}

/** `lanes` runs at a time, one decision after the other on each; a lane takes a new run when its run has had its turns. */
export async function measureAllowed(world: World, lanes: number, calls: number, seconds: number): Promise<Figures> {
	const planner = new Planner(world, lanes);
	try {
		const perLane = Math.ceil(calls / lanes / TURNS_PER_RUN) + 1;
		const runs: string[][] = [];
		for (let lane = 0; lane < lanes; lane++) {
			const own: string[] = [];
			for (let n = 0; n < perLane; n++) own.push(await planner.newRun("echo"));
			runs.push(own);
		}
		const made = runs.map(() => 0);
		return await measure({
			lanes,
			calls,
			seconds,
			task: (lane) => {
				const turn = made[lane] ?? 0;
				made[lane] = turn + 1;
				const run_id = runs[lane]?.[Math.floor(turn / TURNS_PER_RUN)];
				if (run_id === undefined) throw new Error("a lane ran out of runs");
				return timed(async () => {
					const { messages } = await planner.decide(run_id, "echo");
					if (messages[0]?.final !== true) throw new Error("the call was not final");
				});
			},
		});
	} finally {
		planner.close();
	}
}

/** From the approver's request until the planner can read the run at rest again with the call done: approve and resume. */
export async function measureApproved(world: World, calls: number, seconds: number): Promise<Figures> {
	const planner = new Planner(world, 2);
	try {
		const task = async (): Promise<number> => {
			const run_id = await planner.newRun(ASKING_TOOL.tool_id);
			const [approval] = (await planner.decide(run_id, ASKING_TOOL.tool_id)).pending_approvals;
			if (approval === undefined) throw new Error("no approval was asked for");
			const { seq } = await planner.read(run_id);
			return timed(async () => {
				await planner.approve(approval);
				const run = await planner.rested(run_id, seq);
				if (run.calls[0]?.state !== "COMPLETED") throw new Error(`the approved call is ${run.calls[0]?.state}`);
			});
		};
		return await measure({ lanes: 1, calls, seconds, task });
	} finally {
		planner.close();
	}
}

/** A yardstick: the same shape of request against an object that echoes it, or that keeps something first (`durable`). */
export async function measureYardstick(
	world: World,
	kind: "bare" | "durable",
	lanes: number,
	calls: number,
	seconds: number,
): Promise<Figures> {
	const client = new Client(world.bare, lanes);
	const body = {
		content: null,
		tool_calls: [{ id: "c1", type: "function", function: { name: "echo", arguments: '{"message":"hello"}' } }],
	};
	try {
		return await measure({
			lanes,
			calls,
			seconds,
			task: (lane) => timed(() => client.expect(200, { method: "POST", path: `/${kind}-${lane}`, body })),
		});
	} finally {
		client.close();
	}
}
