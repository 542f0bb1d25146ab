/**
 * The page behind an approval link: shows exactly one frozen call and asks one person. Rendered on the server, works
 * without scripts, and there are none. It only shows; `routes.ts` asks the run's object and takes the form.
 */
import type { Child } from "hono/jsx";
import type { Json } from "#core/json.ts";
import type { ApprovalView } from "#core/run/view.ts";
import type { LinkView } from "#objects/agent-run/api.ts";
import { ExactJson, ExactText, foldedIn } from "./exact.tsx";
import { STYLE } from "./style.ts";
import { summaryIn } from "./summary-in.ts";
import type { Words } from "./words.ts";

const HASH_SHOWN_CHARS = 12;
const TAINT = "taint:";

/** A whole document. */
export function Page({ words, title, children }: { words: Words; title: string; children?: Child }): Child {
	return (
		<html lang={words.lang}>
			<head>
				<meta charset="utf-8" />
				<meta name="viewport" content="width=device-width, initial-scale=1" />
				<meta name="robots" content="noindex, nofollow" />
				<title>{`${title} · Belay`}</title>
				<style dangerouslySetInnerHTML={{ __html: STYLE }} />
			</head>
			<body>
				<main>
					<p class="brand">Belay</p>
					<h1>{title}</h1>
					{children}
				</main>
			</body>
		</html>
	);
}

/** The request, with the form while it can still be decided through this link. `late`: the reader has just tried to. */
export function ApprovalPage({ view, words, late }: { view: LinkView; words: Words; late?: boolean }): Child {
	const { approval } = view;
	const open = approval.status === "pending";
	const superseded = view.superseded ?? null;
	return (
		<Page words={words} title={open ? words.title : `${words.outcome}${words.colon}${words.statuses[approval.status]}`}>
			{late && !open ? <p class="lead">{words.late}</p> : null}
			{open ? <p class="lead">{words.intro}</p> : null}
			{superseded === null ? null : <p class="lead">{words.superseded[superseded]}</p>}
			<Decisions approval={approval} words={words} />
			<Call approval={approval} words={words} />
			<Context view={view} words={words} />
			{!open ? null : view.view_only ? (
				<p class="lead">
					{words.view_only[0]}
					<code>{`POST /v1/approvals/${approval.approval_id}/decision`}</code>
					{words.view_only[1]}
				</p>
			) : (
				<Form view={view} words={words} />
			)}
		</Page>
	);
}

/** After a decision: what was decided about which call. */
export function DecidedPage({
	approval,
	decision,
	words,
}: {
	approval: ApprovalView;
	decision: "approve" | "deny";
	words: Words;
}): Child {
	return (
		<Page words={words} title={decision === "approve" ? words.thanks_approve : words.thanks_deny}>
			<Decisions approval={approval} words={words} />
			<Call approval={approval} words={words} />
		</Page>
	);
}

/** One sentence and nothing about what exists. */
export function MessagePage({ title, text, words }: { title: string; text: string; words: Words }): Child {
	return (
		<Page words={words} title={title}>
			<p class="lead">{text}</p>
		</Page>
	);
}

function Call({ approval, words }: { approval: ApprovalView; words: Words }): Child {
	const none =
		typeof approval.arguments === "object" &&
		approval.arguments !== null &&
		Object.keys(approval.arguments).length === 0;
	return (
		<section class="card">
			<p class="call">
				<span class="tool">
					<ExactText text={approval.tool_id} words={words} />
				</span>
				<span class="version">
					<ExactText text={approval.tool_version} words={words} />
				</span>
				<span class={`risk ${approval.risk}`}>
					{words.risk}
					{words.colon}
					{words.risks[approval.risk]}
				</span>
			</p>
			<h2>{words.arguments}</h2>
			<p class="note">{none ? words.no_arguments : words.arguments_note}</p>
			{none ? null : <ExactJson value={approval.arguments as Json} words={words} />}
		</section>
	);
}

function Context({ view: { approval, approver, goal, tool }, words }: { view: LinkView; words: Words }): Child {
	const text = (one: string) => <ExactText text={one} words={words} />;
	return (
		<section class="card">
			<dl>
				<dt>{words.requested_by}</dt>
				<dd>{text(approval.requested_by)}</dd>
				<dt>{words.goal}</dt>
				<dd>{text(goal)}</dd>
				<dt>{words.summary}</dt>
				<dd>{text(summaryIn(words, approval, tool))}</dd>
				<dt>{words.rules}</dt>
				<dd>{text(approval.rule_ids.map((id) => why(id, words)).join("\n"))}</dd>
				<dt>{words.expires}</dt>
				<dd>
					<time datetime={approval.expires_at}>{readable(approval.expires_at)}</time>
				</dd>
				<dt>{words.approver}</dt>
				<dd>{text(approver)}</dd>
				<dt>{words.input_hash}</dt>
				<dd>
					<Hash text={approval.input_hash} words={words} />
				</dd>
				<dt>{words.definition_hash}</dt>
				<dd>
					<Hash text={approval.definition_hash} words={words} />
				</dd>
			</dl>
		</section>
	);
}

function why(rule_id: string, { reasons, taint }: Words): string {
	if (rule_id.startsWith(TAINT)) return taint(rule_id.slice(TAINT.length));
	return (Object.hasOwn(reasons, rule_id) ? reasons[rule_id] : undefined) ?? rule_id;
}

function Hash({ text, words }: { text: string; words: Words }): Child {
	return (
		<details>
			<summary>
				<code>{text.slice(0, HASH_SHOWN_CHARS)}…</code>
			</summary>
			<code>
				<ExactText text={text} words={words} />
			</code>
		</details>
	);
}

function Form({ view, words }: { view: LinkView; words: Words }): Child {
	const folded = foldedIn(view.approval.arguments as Json);
	return (
		<form method="post" class="card">
			<input type="hidden" name="csrf" value={view.csrf} />
			<label for="reason">{words.reason}</label>
			<p class="note" id="reason-hint">
				{words.reason_hint}
			</p>
			<textarea id="reason" name="reason" maxlength={1024} aria-describedby="reason-hint" autocomplete="off" />
			{folded.parts === 0 ? null : <p class="warn">{words.folded(folded.parts, folded.characters)}</p>}
			<div class="buttons">
				<button class="deny" type="submit" name="decision" value="deny">
					{words.deny}
				</button>
				<button class="approve" type="submit" name="decision" value="approve">
					{words.approve}
				</button>
			</div>
			<p class="note">{words.once}</p>
		</form>
	);
}

/** Who decided and why. What was decided is in the title; it is said here only where the outcome is another one. */
function Decisions({ approval: { status, decisions }, words }: { approval: ApprovalView; words: Words }): Child {
	const agrees = { approve: status === "approved" || status === "consumed", deny: status === "denied" };
	return decisions.map((one) => (
		<p class="lead">
			{agrees[one.decision] ? words.decided_by : words.by[one.decision]}
			{words.colon}
			<ExactText text={one.by} words={words} /> · {readable(one.at)}
			{one.reason === null ? null : (
				<>
					{" · "}
					{words.reason}
					{words.colon}
					<span class="said">
						<ExactText text={one.reason} words={words} />
					</span>
				</>
			)}
		</p>
	));
}

/** `2026-11-30 14:05 UTC`: one zone for everybody, named. */
export const readable = (instant: string): string => `${instant.slice(0, 16).replace("T", " ")} UTC`;
