/** An approval's one line in the reader's language. What was recorded is English; its fixed parts are said anew. */
import { type Summarized, summarize } from "#core/approval/summarize.ts";
import { isJsonObject, type Json } from "#core/json.ts";
import type { ApprovalView } from "#core/run/view.ts";
import type { Words } from "./words.ts";

export function summaryIn(words: Words, approval: ApprovalView, tool: Summarized | undefined): string {
	const args = approval.arguments as Json;
	return words.lang === "en" || tool === undefined || !isJsonObject(args)
		? approval.summary
		: summarize(tool, args, words.lang);
}
