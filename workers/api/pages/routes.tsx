/**
 * `/a/:token`: an approval link. GET and HEAD show and change nothing, however often scanners and previews open them
 * (A12); only a POST of the page's own form decides, once. A token that is not ours by its MAC wakes no object. Every
 * answer is a page, with nothing cached and no referrer, since the address itself is the credential.
 */
import type { Child } from "hono/jsx";
import * as z from "zod";
import { D1Unavailable } from "#adapters/d1/d1-unavailable.ts";
import { readMasters } from "#adapters/secrets/derive.ts";
import { checkLinkToken, linkKey } from "#adapters/secrets/link-token.ts";
import { runId } from "#core/ids.ts";
import { readBytes } from "../middleware/read-body.ts";
import { type Ctx, noun } from "../noun.ts";
import { ApiProblem, notFound, problem } from "../problem.ts";
import { askRun } from "../run-object.ts";
import { ApprovalPage, DecidedPage, MessagePage, readable } from "./approval-page.tsx";
import { STYLE_SOURCE } from "./style.ts";
import { languageOf, type Words, wordsFor } from "./words.ts";

const REASON_MAX_CHARS = 1_024;
const open = { who: "public" } as const;
type OfLink = Ctx<"/:token">;

const decisionForm = z.object({
	csrf: z.string().describe("as the page's form has it"),
	decision: z.enum(["approve", "deny"]),
	reason: z.string().max(REASON_MAX_CHARS).optional().describe("in the approver's words; blank is none"),
});

export const pages = noun("/a", "Approval links");

pages.get(
	"/:token",
	{
		summary: "the page of an approval link; decides nothing",
		access: open,
		answers: { 200: "text/html" },
		failure: "text/html",
	},
	(c) =>
		asPage(c, async (words) => {
			const { token, run_id } = ours(c);
			const view = await askRun(c.env, run_id, "read", (run) => run.openLink({ v: 1, token }));
			return page(c, <ApprovalPage view={view} words={words} />, 200);
		}),
);

pages.post(
	"/:token",
	{
		summary: "decide through an approval link, once",
		access: open,
		documented_form: decisionForm,
		answers: { 200: "text/html" },
		failure: "text/html",
	},
	(c) =>
		asPage(c, async (words) => {
			const { token, run_id } = ours(c);
			const form = await readForm(c);
			try {
				const approval = await askRun(c.env, run_id, "write", (run) => run.decideLink({ v: 1, token, ...form }));
				return page(c, <DecidedPage approval={approval} decision={form.decision} words={words} />, 200);
			} catch (error) {
				if (!(error instanceof ApiProblem) || error.status !== 409) throw error;
				// somebody else was first, or the call is not to be made any more: show what became of it
				const view = await askRun(c.env, run_id, "read", (run) => run.openLink({ v: 1, token }));
				return page(c, <ApprovalPage view={view} words={words} late />, 409);
			}
		}),
);

function ours(c: OfLink): { token: string; run_id: string } {
	const token = c.req.param("token");
	for (const master of readMasters(c.env.BELAY_MASTER_SECRET)) {
		const found = checkLinkToken(token, linkKey(master));
		if (found !== undefined) return { token, run_id: runId(found.run_part) };
	}
	throw notFound();
}

/** A form that is not taken. What was wrong, and what to do, is said in the reader's words. */
class FormFault extends Error {
	override readonly name = "FormFault";
	readonly said: (words: Words) => string;

	constructor(said: (words: Words) => string) {
		super("the form is not valid");
		this.said = said;
	}
}

/** Each field once and nothing else of it: two decisions in one form are none. */
async function readForm(c: OfLink): Promise<{ csrf: string; decision: "approve" | "deny"; reason: string | null }> {
	const type = (c.req.header("content-type") ?? "").split(";")[0]?.trim().toLowerCase();
	if (type !== "application/x-www-form-urlencoded") throw problem("unsupported_media_type", "send the page's form");
	const form = new URLSearchParams(text(await readBytes(c.req.raw.body)));
	const one = (name: string): string | undefined => {
		const all = form.getAll(name);
		return all.length === 1 ? all[0] : undefined;
	};
	const csrf = one("csrf");
	if (csrf === undefined) throw problem("csrf_failed", "the form was not this page's; open the link again");
	const decision = one("decision");
	if (decision !== "approve" && decision !== "deny") throw new FormFault((words) => words.troubles.no_decision);
	// forms send CRLF for what their `maxlength` counts as one line feed
	const reason = (one("reason") ?? "").replace(/\r\n?/g, "\n").trim();
	if (reason.length > REASON_MAX_CHARS)
		throw new FormFault((words) => words.troubles.reason_too_long(reason.length, REASON_MAX_CHARS));
	return { csrf, decision, reason: reason === "" ? null : reason };
}

/** The form as text: bytes that are not UTF-8 are refused, plain or escaped, since a reason is shown to others. */
function text(bytes: Uint8Array): string {
	try {
		const sent = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
		decodeURIComponent(sent);
		return sent;
	} catch {
		throw problem("malformed_body", "the form is not UTF-8 text");
	}
}

/** Renders failures as pages too: a person reads them. What is unknown and what was never valid look the same. */
async function asPage(c: OfLink, render: (words: Words) => Promise<Response>): Promise<Response> {
	const words = wordsFor(languageOf(c.req.query("lang"), c.req.header("accept-language")));
	try {
		return await render(words);
	} catch (error) {
		if (error instanceof FormFault)
			return page(c, <MessagePage title={words.trouble_title} text={error.said(words)} words={words} />, 422);
		const status = error instanceof ApiProblem ? error.status : error instanceof D1Unavailable ? 503 : undefined;
		if (status === undefined) throw error;
		if (status === 404)
			return page(c, <MessagePage title={words.missing_title} text={words.missing} words={words} />, 404);
		const { decision, decided_at } = (error instanceof ApiProblem && error.more.extra) || {};
		if (status === 410 && (decision === "approve" || decision === "deny")) {
			const when = words.used(readable(String(decided_at)));
			return page(c, <MessagePage title={words.used_title[decision]} text={when} words={words} />, 410);
		}
		if (status === 410 || status === 409)
			return page(c, <MessagePage title={words.gone_title} text={words.gone} words={words} />, 410);
		return page(c, <MessagePage title={words.trouble_title} text={trouble(c, error, words)} words={words} />, status);
	}
}

function trouble(c: OfLink, error: unknown, { troubles }: Words): string {
	switch (error instanceof ApiProblem ? error.code : "store_unavailable") {
		case "csrf_failed":
			return troubles.not_this_page;
		case "forbidden":
			return troubles.forbidden;
		case "unsupported_media_type":
			return troubles.media_type;
		case "malformed_body":
			return troubles.not_text;
		case "body_too_large":
			return troubles.too_large;
		case "run_unavailable":
			// the answer got lost, and with it whether the decision was taken
			return c.req.method === "POST" ? troubles.unknown : troubles.later;
		default:
			return troubles.later;
	}
}

const HEADERS: Readonly<Record<string, string>> = {
	"content-type": "text/html; charset=utf-8",
	"cache-control": "no-store",
	"referrer-policy": "no-referrer",
	"x-robots-tag": "noindex, nofollow",
	"content-security-policy": `default-src 'none'; style-src ${STYLE_SOURCE}; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
};

async function page(c: OfLink, content: Child, status: number): Promise<Response> {
	const markup = String(await content);
	return c.body(`<!doctype html>${markup}`, status as 200, HEADERS);
}
