/**
 * Asks the tools' own checks before a step that judges calls of such tools (V2): a step is synchronous and runs no sandbox.
 * The core machine says which inputs it would judge, the sandbox says what it thinks of each, and the event takes the
 * verdicts along. It decides nothing: a verdict that is missing makes the machine refuse. Part of the AgentRun object.
 */
import type { ExecutorApi } from "#adapters/wasm/executor-api.ts";
import { runSemanticCheck } from "#adapters/wasm/semantic-checker.ts";
import { ENGINE_INSTANCES_MAX, SEMANTIC_CHECK_WALL_MS, SEMANTIC_CHECKS_WALL_MS } from "#core/limits.ts";
import type { ApprovalEdited, Planned } from "#core/run/event.ts";
import type { SemanticVerdict } from "#core/run/semantic-check.ts";
import type { World } from "#core/run/state.ts";
import { mayNeedChecks, type UncheckedCall, uncheckedCalls } from "#core/run/unchecked.ts";
import type { Holder } from "./apply.ts";

/** The registry may move while checks run, and new definitions have new checks; a second move in a row refuses. */
const ROUNDS_MAX = 2;

export class SemanticChecks {
	readonly #executor: ExecutorApi;
	readonly #holder: Pick<Holder, "state" | "kit">;
	readonly #world: () => Promise<World>;

	constructor(executor: ExecutorApi, holder: Pick<Holder, "state" | "kit">, world: () => Promise<World>) {
		this.#executor = executor;
		this.#holder = holder;
		this.#world = world;
	}

	/** Whether `gather` has to be awaited before the step. Synchronous and cheap: every decision of every run asks. */
	needed(event: Planned | ApprovalEdited): boolean {
		const { state, kit } = this.#holder;
		if (state === null) return false;
		if (event.kind === "planned") return mayNeedChecks(state, event);
		if (event.approval === null) return false;
		return kit().tool(event.approval.definition_hash).version.descriptor.semantic_check !== undefined;
	}

	/** The event with the verdicts on its calls. Seconds may have passed then: control is asked anew, who was revoked meanwhile included. */
	async gather<E extends Planned | ApprovalEdited>(event: E): Promise<E> {
		const until = Date.now() + SEMANTIC_CHECKS_WALL_MS;
		const verdicts = new Map<string, SemanticVerdict>();
		let known = event;
		for (let round = 0; round < ROUNDS_MAX; round++) {
			const { state, kit } = this.#holder;
			const open = state === null ? [] : uncheckedCalls(state, known, kit());
			if (open.length === 0) break;
			const line = [...open];
			// As many as there are engines: what waits in line must not spend its own time there.
			await Promise.all(Array.from({ length: ENGINE_INSTANCES_MAX }, () => this.#serve(line, verdicts, until)));
			known = { ...known, checks: verdicts, world: await this.#world() };
		}
		return known;
	}

	async #serve(line: UncheckedCall[], verdicts: Map<string, SemanticVerdict>, until: number): Promise<void> {
		for (let call = line.shift(); call !== undefined; call = line.shift()) {
			const { input_hash, source, arguments: args } = call;
			const left = until - Date.now();
			const wall_ms = Math.min(SEMANTIC_CHECK_WALL_MS, left);
			const late: SemanticVerdict = { kind: "failed", code: "wall_exceeded" };
			verdicts.set(input_hash, left <= 0 ? late : await runSemanticCheck(this.#executor, source, args, wall_ms));
		}
	}
}
