/**
 * The text of a mail with an approval link. Plain text: nothing that a planner wrote is rendered, and what it wrote is
 * shown with its invisible characters spelled out (A19). It does not ask to reply, nor hold a link that decides.
 */
import type { Summarized } from "#core/approval/summarize.ts";
import type { ApprovalView } from "#core/run/view.ts";
import { summaryIn } from "./summary-in.ts";
import { visible } from "./visible.ts";
import { wordsFor } from "./words.ts";

const SUMMARY_MAX_CHARS = 300;

export function linkMail(input: {
	approval: ApprovalView;
	tool?: Summarized | undefined;
	url: string;
	expires_at: string;
	locale: string | null;
}): { subject: string; text: string } {
	const { approval, url, expires_at } = input;
	const words = wordsFor(input.locale ?? undefined);
	const summary = oneLine(summaryIn(words, approval, input.tool));
	const lines = [
		words.mail_intro,
		"",
		`${words.tool}${words.colon}${oneLine(approval.tool_id)} ${oneLine(approval.tool_version)}`,
		`${words.summary}${words.colon}${summary}`,
		`${words.risk}${words.colon}${words.risks[approval.risk]}`,
		`${words.requested_by}${words.colon}${oneLine(approval.requested_by)}`,
		"",
		words.mail_open,
		url,
		"",
		`${words.link_expires}${words.colon}${expires_at}`,
		words.mail_outro,
	];
	return { subject: `${words.mail_subject}${words.colon}${oneLine(approval.tool_id)}`, text: lines.join("\n") };
}

/** Line ends are spelled out as well: a summary must not write lines, or headers, of its own. */
function oneLine(text: string): string {
	const shown = visible(text).replace(/[\r\n\t]/g, (one) => (one === "\n" ? "\\n" : one === "\r" ? "\\r" : "\\t"));
	return shown.length <= SUMMARY_MAX_CHARS ? shown : `${shown.slice(0, SUMMARY_MAX_CHARS)}… (${shown.length})`;
}
