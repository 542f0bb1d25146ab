/**
 * Where people come with approvals: to look, decide, edit, or follow a link. It checks who may see what, gathers, and takes
 * one step; whether a decision counts is the core machine's. Part of the AgentRun object.
 */

import { mayReadApproval } from "#core/policy/run-access.ts";
import type { Caller } from "#core/principal.ts";
import { approvalView } from "#core/run/draft.ts";
import type { StepProblem } from "#core/run/effect.ts";
import type { ApprovalRecord } from "#core/run/state.ts";
import type { ApprovalView } from "#core/run/view.ts";
import type { AgentRunApi, Ask, DecideApproval, LinkView, Reply } from "./api.ts";
import type { Links } from "./links.ts";
import { no, notFound, refusal } from "./replies.ts";
import type { Runtime } from "./runtime.ts";

export class ApprovalDesk {
	readonly #runtime: Runtime;
	readonly #links: Links;

	constructor(runtime: Runtime, links: Links) {
		this.#runtime = runtime;
		this.#links = links;
	}

	async view(caller: Caller, approval_id: string): Promise<Reply<ApprovalView>> {
		return this.#onApproval(caller, approval_id, async () => null);
	}

	async decide(ask: Ask<DecideApproval>): Promise<Reply<ApprovalView>> {
		return this.#onApproval(ask.caller, ask.approval_id, async () => {
			const { v: _v, caller: by, ...decision } = ask;
			const world = await this.#runtime.world(true);
			// Read after the await: somebody else may have decided meanwhile.
			const approval = this.#approval(ask.approval_id);
			return this.#runtime.step({ kind: "approval_decided", ...decision, approval, by, via: "api", world }).problem;
		});
	}

	async edit(ask: Parameters<AgentRunApi["editApproval"]>[0]): Promise<Reply<ApprovalView>> {
		return this.#onApproval(ask.caller, ask.approval_id, async () => {
			const { approval_id, arguments: args, caller: by } = ask;
			const asked = { kind: "approval_edited", approval_id, arguments: args, by } as const;
			const event = { ...asked, approval: this.#approval(approval_id), world: await this.#runtime.world(true) };
			const { checks } = this.#runtime;
			const checked = checks.needed(event) ? await checks.gather(event) : event;
			// Read after the awaits: somebody else may have decided meanwhile.
			const step = this.#runtime.step({ ...checked, approval: this.#approval(approval_id) });
			await step.announced;
			return step.problem;
		});
	}

	/** Who may not even see the approval is answered as if there were none; who may see it is told what is missing. */
	async #onApproval(
		caller: Caller,
		approval_id: string,
		act: () => Promise<StepProblem | null>,
	): Promise<Reply<ApprovalView>> {
		const state = await this.#runtime.ready();
		const approval = this.#approval(approval_id);
		if (state === null || approval === null || !mayReadApproval(caller, state.run, approval.domain)) return notFound();
		const problem = await act();
		if (problem !== null) return refusal(problem);
		return { ok: true, value: approvalView(this.#approval(approval_id) ?? approval) };
	}

	async issueLink(ask: Parameters<AgentRunApi["issueLink"]>[0]): ReturnType<AgentRunApi["issueLink"]> {
		const state = await this.#runtime.ready();
		const approval = this.#approval(ask.approval_id);
		if (
			state === null ||
			approval === null ||
			state.run.tenant_id !== ask.tenant_id ||
			ask.approver.tenant_id !== ask.tenant_id
		)
			return notFound();
		if (approval.status !== "pending") return no(409, "already_decided", `the approval is ${approval.status}`);
		// Asked again here: two requests under one key may both have found nothing.
		const before = ask.request === undefined ? null : this.#links.ofRequest(approval, ask.request);
		if (before?.ok === false) return before;
		if (before?.value) return no(409, "idempotency_conflict", "the link of this Idempotency-Key was sent just now");
		return { ok: true, value: this.#links.issue(approval, ask.approver, ask.view_only, ask.request) };
	}

	async linkOfRequest(ask: Parameters<AgentRunApi["linkOfRequest"]>[0]): ReturnType<AgentRunApi["linkOfRequest"]> {
		const state = await this.#runtime.ready();
		const approval = this.#approval(ask.approval_id);
		if (state === null || approval === null || !mayReadApproval(ask.caller, state.run, approval.domain))
			return notFound();
		return this.#links.ofRequest(approval, ask.request);
	}

	async linkMailed({ token, taken }: Parameters<AgentRunApi["linkMailed"]>[0]): Promise<Reply<null>> {
		if ((await this.#runtime.ready()) === null) return notFound();
		this.#links.mailed(token, taken);
		return { ok: true, value: null };
	}

	async openLink(token: string): Promise<Reply<LinkView>> {
		await this.#runtime.ready();
		return this.#links.view(token);
	}

	async decideLink(ask: Parameters<AgentRunApi["decideLink"]>[0]): Promise<Reply<ApprovalView>> {
		await this.#runtime.ready();
		const first = this.#links.open(ask.token);
		if (!first.ok) return first;
		if (first.value.doc.view_only)
			return no(403, "forbidden", "this link only shows the approval; decide it by the API");
		if (!this.#links.formIsOurs(ask.token, ask.csrf, first.value.approval))
			return no(403, "csrf_failed", "the form was not this page's; open the link again");
		const by = await this.#links.approver(first.value.doc);
		const world = await this.#runtime.world(true);
		// Looked at again after the awaits: two clicks arrive as two requests.
		const opened = this.#links.open(ask.token);
		if (!opened.ok) return opened;
		// A link outlives its person's last key; only control knows who was revoked.
		if (world.lease === null)
			return no(503, "control_unavailable", "the tenant's control could not be reached; try again");
		if (by === undefined || world.lease.revoked_principals.includes(by.principal_id))
			return no(403, "forbidden", "the approver is not registered any more");
		const { approval, token_hash } = opened.value;
		const { approval_id, tool_id, tool_call_id, input_hash } = approval;
		const step = this.#runtime.step(
			{
				kind: "approval_decided",
				approval_id,
				tool_id,
				tool_call_id,
				input_hash,
				decision: ask.decision,
				reason: ask.reason,
				approval,
				by,
				via: "link",
				world,
			},
			{ after: () => this.#runtime.store.useLink(token_hash, Date.now()) },
		);
		if (step.problem !== null) return refusal(step.problem);
		return { ok: true, value: approvalView(this.#approval(approval_id) ?? approval) };
	}

	/** The newest state wins over the stored row only where it is part of the working state. */
	#approval(approval_id: string): ApprovalRecord | null {
		return (
			this.#runtime.state?.approvals.get(approval_id) ??
			(this.#runtime.state === null ? null : (this.#runtime.store.approval(approval_id) ?? null))
		);
	}
}
