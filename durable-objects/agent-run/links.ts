/**
 * Approval links (A4, decision 23): made for one approval and one approver, signed, single use, short-lived, kept as a
 * hash. Opening one decides nothing; deciding takes the page's own token in a POST. Used by the AgentRun object only.
 */

import { timingSafeEqual } from "node:crypto";
import { D1AuthorityStore } from "#adapters/d1/d1-authority-store.ts";
import { sha256 } from "#adapters/digest.ts";
import { deriveKey, hmacSha256, readMasters } from "#adapters/secrets/derive.ts";
import { checkLinkToken, linkKey, mintLinkToken } from "#adapters/secrets/link-token.ts";
import type { Summarized } from "#core/approval/summarize.ts";
import { hex, runPart } from "#core/ids.ts";
import { invariant } from "#core/invariant.ts";
import { LINK_TTL_MS } from "#core/limits.ts";
import type { Caller, Principal } from "#core/principal.ts";
import { approvalView } from "#core/run/draft.ts";
import { iso } from "#core/run/kit.ts";
import type { ApprovalRecord, CallRecord } from "#core/run/state.ts";
import { FINISHED, type RunStatus } from "#core/run/view.ts";
import type { LinkRequest, LinkView, Problem, Reply, SupersededBy } from "./api.ts";
import { definition } from "./definitions.ts";
import { no } from "./replies.ts";
import type { Runtime } from "./runtime.ts";

type LinkDoc = {
	readonly approver: Principal;
	readonly expires_at: number;
	readonly view_only: boolean;
	/** Of a link that was asked for under an Idempotency-Key: for which request, and how far its mail has come. */
	readonly request?: { readonly hash: string; readonly sending_at: number; readonly mailed: boolean };
};

/** A mail takes seconds; a request that has not come back within this is taken for lost, and its repeat sends again, ms. */
const SENDING_MAX_MS = 30_000;

export type OpenedLink = { readonly token_hash: string; readonly doc: LinkDoc; readonly approval: ApprovalRecord };

export class Links {
	readonly #env: Env;
	readonly #runtime: Runtime;

	constructor(env: Env, runtime: Runtime) {
		this.#env = env;
		this.#runtime = runtime;
	}

	/** Under an Idempotency-Key the token follows from it: a repeat makes the same link, never a second one. */
	issue(
		approval: ApprovalRecord,
		approver: Principal,
		view_only: boolean,
		request?: LinkRequest,
	): { token: string; expires_at: string; tool: Summarized } {
		const now = Date.now();
		const token = this.#token(approval, request?.seed ?? hex(crypto.getRandomValues(new Uint8Array(32))));
		const expires_at = Math.min(now + LINK_TTL_MS, approval.expires_at_ms);
		const { tenant_id, principal_id, kind, name } = approver;
		const asked = request === undefined ? {} : { request: { hash: request.hash, sending_at: now, mailed: false } };
		const doc: LinkDoc = { approver: { tenant_id, principal_id, kind, name }, expires_at, view_only, ...asked };
		this.#runtime.store.putLink(sha256(token), approval.approval_id, doc);
		return { token, expires_at: iso(expires_at), tool: this.#tool(approval) };
	}

	/** What a request's key stands for already: null when its link is still to be made or mailed. */
	ofRequest(approval: ApprovalRecord, { seed, hash }: LinkRequest): Reply<{ expires_at: string } | null> {
		const found = this.#runtime.store.link<LinkDoc>(sha256(this.#token(approval, seed)))?.doc;
		if (found?.request === undefined) return { ok: true, value: null };
		if (found.request.hash !== hash)
			return no(409, "idempotency_conflict", "this Idempotency-Key was used for another request");
		if (found.request.mailed) return { ok: true, value: { expires_at: iso(found.expires_at) } };
		if (Date.now() - found.request.sending_at < SENDING_MAX_MS)
			return no(
				409,
				"idempotency_conflict",
				"a request under this Idempotency-Key is still under way; try again later",
			);
		return { ok: true, value: null };
	}

	/** Whether the mail with this link was taken; one that was not may be sent again at once. */
	mailed(token: string, taken: boolean): void {
		const { store } = this.#runtime;
		const link = store.link<LinkDoc>(sha256(token));
		if (link?.doc.request === undefined) return;
		const request = { ...link.doc.request, sending_at: 0, mailed: taken };
		store.putLink(sha256(token), link.approval_id, { ...link.doc, request });
	}

	#token(approval: ApprovalRecord, seed: string): string {
		const part = runPart(approval.run_id);
		invariant(part !== undefined, "an approval belongs to a run");
		return mintLinkToken(part, Uint8Array.from(Buffer.from(seed, "hex")), this.#linkKey());
	}

	/** The link's approval, or why there is none: unknown 404; used or out of time 410. */
	open(token: string): Reply<OpenedLink> {
		const { store, state } = this.#runtime;
		if (state === null || checkLinkToken(token, this.#linkKey()) === undefined)
			return no(404, "not_found", "there is no such link");
		const token_hash = sha256(token);
		const link = store.link<LinkDoc>(token_hash);
		const approval =
			link === undefined ? undefined : (state.approvals.get(link.approval_id) ?? store.approval(link.approval_id));
		if (link === undefined || approval === undefined) return no(404, "not_found", "there is no such link");
		if (link.doc.expires_at <= Date.now()) return no(410, "link_expired", "this link has expired; ask for a new one");
		if (link.used_at !== null) return used(approval);
		return { ok: true, value: { token_hash, doc: link.doc, approval } };
	}

	view(token: string): Reply<LinkView> {
		const opened = this.open(token);
		if (!opened.ok) return opened;
		const { approval, doc } = opened.value;
		const run = this.#runtime.state?.run;
		return {
			ok: true,
			value: {
				approval: approvalView(approval),
				approver: doc.approver.name,
				csrf: this.#csrf(token, approval),
				view_only: doc.view_only,
				goal: run?.goal ?? "",
				tool: this.#tool(approval),
				superseded: approval.status === "superseded" ? supersededBy(this.#call(approval), run?.status) : null,
			},
		};
	}

	#tool({ definition_hash }: ApprovalRecord): Summarized {
		const { name, version, effect, risk } = definition(this.#runtime.store, definition_hash).version.descriptor;
		return { name, version, effect, risk };
	}

	#call({ tool_call_id }: ApprovalRecord): CallRecord | undefined {
		return this.#runtime.state?.calls.get(tool_call_id) ?? this.#runtime.store.call(tool_call_id);
	}

	/** The form must come from the page of this very link. */
	formIsOurs(token: string, csrf: string, approval: ApprovalRecord): boolean {
		const given = Buffer.from(csrf, "utf8");
		const expected = Buffer.from(this.#csrf(token, approval), "utf8");
		return given.byteLength === expected.byteLength && timingSafeEqual(given, expected);
	}

	/** The approver with what they may do now: a link keeps nobody's authority alive. */
	async approver(doc: LinkDoc): Promise<Caller | undefined> {
		const { tenant_id, principal_id } = doc.approver;
		const authority = await new D1AuthorityStore(this.#env.DB).resolve(tenant_id, principal_id, 0);
		return authority === undefined ? undefined : { ...doc.approver, authority };
	}

	#csrf(token: string, approval: ApprovalRecord): string {
		const [master] = readMasters(this.#env.BELAY_MASTER_SECRET);
		return hex(hmacSha256(deriveKey(master.bytes, "", "csrf"), `${approval.approval_id}\0${token}`));
	}

	#linkKey(): Uint8Array {
		return linkKey(readMasters(this.#env.BELAY_MASTER_SECRET)[0]);
	}
}

/** A link that was used decides nothing and shows no call; until it expires it still says what was decided, and when. */
function used({ decisions }: ApprovalRecord): { readonly ok: false; readonly problem: Problem } {
	const last = decisions.at(-1);
	const told = last === undefined ? {} : { extra: { decision: last.decision, decided_at: last.at } };
	return { ok: false, problem: { ...no(410, "link_used", "this link has been used already").problem, ...told } };
}

function supersededBy(call: CallRecord | undefined, status: RunStatus = "planning"): SupersededBy | null {
	if (call === undefined) return null;
	if (call.superseded_by !== null) return "edited";
	switch (call.refusal?.reason ?? call.error?.code) {
		case "run_cancelled":
			return status === "cancelled" ? "cancelled" : FINISHED.has(status) ? "ended" : "taken_back";
		case "budget_exhausted":
			return "budget";
		default:
			return "refused";
	}
}
