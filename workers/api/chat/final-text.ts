/**
 * What a run at rest says to a chat client. A waiting approval, a used-up session and a run that still works are answers
 * (the conversation goes on by naming the run); a failed run is an error, so that no client takes it for an answer. The text
 * holds no link and nothing of a call's arguments: whoever reads the chat is not thereby an approver (decision 39).
 */
import type { RunView } from "#core/run/view.ts";
import { ApiProblem, problem } from "../problem.ts";

/** Names listed in a notice; a turn may hold many calls. */
const NAMES_MAX = 5;

const WORDS = {
	en: {
		suspended: "The run has used its time and rests. Go on with another message that names this run.",
		working: "The run still works on this. Ask again with a request that names this run.",
		unknown_outcome:
			"It is not known what became of a call, and a person has to say. Ask again with a request that names this run.",
		approval: (tools: readonly string[], more: number) =>
			`An approval is pending: a person has to decide about ${tools.join(", ")}${more === 0 ? "" : ` and ${more} more`} before it is executed. Ask again with a request that names this run.`,
	},
	zh: {
		suspended: "任务已用完时间，暂停中。请用另一条指明此任务的消息继续。",
		working: "任务仍在处理中。请用指明此任务的请求再次询问。",
		unknown_outcome: "有一次调用的结果未知，需要有人说明。请用指明此任务的请求再次询问。",
		approval: (tools: readonly string[], more: number) =>
			`有审批待处理：需要有人对 ${tools.join("、")}${more === 0 ? "" : ` 以及另外 ${more} 个工具`} 作出决定后才会执行。请用指明此任务的请求再次询问。`,
	},
} as const;

/** As repair hints do, notices speak the run's language. */
const wordsOf = (run: RunView) => WORDS[run.locale ?? "en"];

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
			return wordsOf(run).suspended;
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
			return wordsOf(run).working;
	}
}

function waiting(run: RunView): string {
	const words = wordsOf(run);
	const tools = [...new Set(run.pending_approvals.map((approval) => `\`${approval.tool_id}\``))];
	if (tools.length === 0) return words.unknown_outcome;
	return words.approval(tools.slice(0, NAMES_MAX), Math.max(0, tools.length - NAMES_MAX));
}
