/**
 * What a run at rest says to a chat client. A waiting approval, a used-up session and a run that still works are answers
 * (the conversation goes on by naming the run); a failed run is an error, so that no client takes it for an answer. The text
 * holds no link and nothing of a call's arguments: whoever reads the chat is not thereby an approver (decision 39).
 */
import type { RunView } from "#core/run/view.ts";
import { ApiProblem, problem } from "../problem.ts";

/** Names listed in a notice; a turn may hold many calls. */
const NAMES_MAX = 5;

/** The assistant's text. Throws what the run failed with. */
export function finalText(run: RunView): string {
	switch (run.status) {
		case "completed":
			return run.answer ?? "";
		case "awaiting_approval":
			return waiting(run);
		case "awaiting_caller":
			// its calls are what it says
			return "";
		case "suspended":
			return "The run has used its time and rests. Go on with another message that names this run.";
		case "failed": {
			const { code = "run_failed", message = "the run failed" } = run.error ?? {};
			// 502: the request was fine, what stands behind this endpoint gave no answer
			throw new ApiProblem(502, code, message, { headers: { "belay-run-id": run.run_id } });
		}
		case "cancelled":
			throw problem("run_finished", "the run was cancelled; start a new one", {
				headers: { "belay-run-id": run.run_id },
			});
		default:
			return "The run still works on this. Ask again with a request that names this run.";
	}
}

function waiting(run: RunView): string {
	const again = "Ask again with a request that names this run.";
	const tools = [...new Set(run.pending_approvals.map((approval) => `\`${approval.tool_id}\``))];
	if (tools.length === 0) return `It is not known what became of a call, and a person has to say. ${again}`;
	const more = tools.length > NAMES_MAX ? ` and ${tools.length - NAMES_MAX} more` : "";
	return `An approval is pending: a person has to decide about ${tools.slice(0, NAMES_MAX).join(", ")}${more} before it is executed. ${again}`;
}
