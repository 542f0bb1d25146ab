/** The words of pages and mails, in English and Chinese. What a planner or tool wrote is never translated. */
import type { SupersededBy } from "#objects/agent-run/api.ts";

type Words = {
	readonly lang: "en" | "zh";
	readonly title: string;
	readonly intro: string;
	readonly tool: string;
	readonly summary: string;
	readonly risk: string;
	readonly risks: Readonly<Record<"low" | "medium" | "high", string>>;
	readonly arguments: string;
	readonly arguments_note: string;
	readonly no_arguments: string;
	readonly requested_by: string;
	readonly goal: string;
	readonly expires: string;
	readonly link_expires: string;
	readonly input_hash: string;
	readonly definition_hash: string;
	readonly rules: string;
	/** Why it asks, by rule; a rule of another version is shown as it is called. */
	readonly reasons: Readonly<Record<string, string>>;
	readonly taint: (label: string) => string;
	readonly approver: string;
	readonly reason: string;
	readonly reason_hint: string;
	readonly approve: string;
	readonly deny: string;
	/** What stands before and after the API's route. */
	readonly view_only: readonly [before: string, after: string];
	readonly once: string;
	readonly spaces: (count: number) => string;
	readonly show_all: (shown: number, total: number) => string;
	readonly folded: (parts: number, characters: number) => string;
	readonly empty_text: string;
	readonly statuses: Readonly<
		Record<"pending" | "approved" | "denied" | "expired" | "superseded" | "consumed", string>
	>;
	readonly outcome: string;
	readonly decided_by: string;
	/** Where the outcome is not what was decided. */
	readonly by: Readonly<Record<"approve" | "deny", string>>;
	/** What became of a superseded approval. */
	readonly superseded: Readonly<Record<SupersededBy, string>>;
	readonly late: string;
	readonly colon: string;
	readonly thanks_approve: string;
	readonly thanks_deny: string;
	readonly gone_title: string;
	readonly gone: string;
	readonly used_title: Readonly<Record<"approve" | "deny", string>>;
	readonly used: (when: string) => string;
	readonly missing_title: string;
	readonly missing: string;
	readonly trouble_title: string;
	/** What was wrong, what became of the decision, and what to do. */
	readonly troubles: {
		readonly reason_too_long: (length: number, max: number) => string;
		readonly no_decision: string;
		readonly not_this_page: string;
		readonly forbidden: string;
		readonly media_type: string;
		readonly not_text: string;
		readonly too_large: string;
		readonly later: string;
		readonly unknown: string;
	};
	readonly mail_subject: string;
	readonly mail_intro: string;
	readonly mail_open: string;
	readonly mail_outro: string;
};

const en: Words = {
	lang: "en",
	title: "Approval requested",
	intro: "An agent asks to make exactly this call. Nothing has run yet.",
	tool: "Tool",
	summary: "Summary",
	risk: "Risk",
	risks: { low: "low", medium: "medium", high: "high" },
	arguments: "Arguments",
	arguments_note: "Exactly these values will be used. Invisible characters are written out, for example \\u200B.",
	no_arguments: "This call has no arguments.",
	requested_by: "Requested by",
	goal: "Goal of the run",
	expires: "The request expires",
	link_expires: "The link expires",
	input_hash: "Input hash",
	definition_hash: "Definition hash",
	rules: "Why it asks",
	reasons: {
		"approval:always": "This tool asks before every call.",
		"approval:when": "The tool's approval rule applies to these arguments.",
		"approval:when_failed": "The tool's approval rule could not be evaluated, so a person is asked.",
		"approval:floor_mcp": "Tools of external MCP servers always ask.",
		"replay:write_asks": "A live replay asks before every call that is not a read.",
	},
	taint: (label) => `The arguments have text from a result of ${label}.`,
	approver: "You decide as",
	reason: "Reason",
	reason_hint: "Optional; the agent is told.",
	approve: "Approve",
	deny: "Deny",
	view_only: ["This link shows the request only. To decide, an approver asks the API: ", "."],
	once: "This link works once. It approves this one call, not the tool.",
	spaces: (count) => `${count} spaces`,
	show_all: (shown, total) => `Show all (${shown} of ${total} characters shown)`,
	folded: (parts, characters) =>
		`${parts === 1 ? "1 part of the arguments is" : `${parts} parts of the arguments are`} folded: ${characters} characters are not shown. Read them with “Show all” before you decide.`,
	empty_text: "(empty text)",
	statuses: {
		pending: "waiting for a decision",
		approved: "approved",
		denied: "denied",
		expired: "expired",
		superseded: "not needed any more",
		consumed: "approved, and the call was started",
	},
	outcome: "Outcome",
	decided_by: "Decided by",
	by: { approve: "Approved by", deny: "Denied by" },
	superseded: {
		edited: "The arguments were edited, so another call took this one's place. This call was not executed.",
		cancelled: "The run was cancelled. This call was not executed.",
		ended: "The run ended before this call was started. It was not executed.",
		taken_back: "The call was taken back. It was not executed.",
		budget: "The run has used what it may use. This call was not executed.",
		refused: "The call was judged again before its start and is not allowed any more. It was not executed.",
	},
	late: "Your decision came too late and was not taken.",
	colon: ": ",
	thanks_approve: "You approved this call.",
	thanks_deny: "You denied this call.",
	gone_title: "This link was used or has expired",
	gone: "Ask whoever sent it for a new one. Nothing was changed now.",
	used_title: { approve: "This link was used: the call was approved", deny: "This link was used: the call was denied" },
	used: (when) => `That was decided on ${when}. Nothing was changed now.`,
	missing_title: "No such link",
	missing: "The address is incomplete or was never valid.",
	trouble_title: "That did not work",
	troubles: {
		reason_too_long: (length, max) =>
			`The reason has ${length} characters; at most ${max} are taken. Nothing was decided. Go back, shorten it and send it again.`,
		no_decision:
			"Neither Approve nor Deny was chosen, or both were. Nothing was decided. Go back and press one of the two buttons.",
		not_this_page:
			"The form was not sent from this link's page. Nothing was decided. Close this page, open the link again from the message and decide there.",
		forbidden:
			"This link may not decide: it only shows the request, or you are not an approver of this call any more. Nothing was decided. Ask whoever sent it.",
		media_type:
			"What was sent is not this page's own form. Nothing was decided. Open the link in a browser and use its buttons.",
		not_text:
			"What was sent is incomplete or not text in UTF-8. Nothing was decided. Open the link again and write the reason anew.",
		too_large: "What was sent is too long. Nothing was decided. Go back, shorten the reason and send it again.",
		later: "The service cannot be reached right now. Nothing was decided. Go back and try again in a moment.",
		unknown:
			"The connection to the run was lost, so it is not known whether your decision arrived. Open the link again in a moment: while it still asks, nothing was decided.",
	},
	mail_subject: "Approval requested",
	mail_intro: "An agent asks to make a tool call and needs your decision. Nothing has run yet.",
	mail_open: "Read exactly what would run, and decide on the page (opening it decides nothing):",
	mail_outro: "The link is for you alone and works once. Do not forward it.",
};

const zh: Words = {
	lang: "zh",
	title: "请求审批",
	intro: "智能体请求执行下面这一次调用，目前尚未执行任何操作。",
	tool: "工具",
	summary: "摘要",
	risk: "风险",
	risks: { low: "低", medium: "中", high: "高" },
	arguments: "参数",
	arguments_note: "将原样使用这些值。不可见字符会以编码显示，例如 \\u200B。",
	no_arguments: "此调用没有参数。",
	requested_by: "请求者",
	goal: "任务目标",
	expires: "请求失效时间",
	link_expires: "链接失效时间",
	input_hash: "输入哈希",
	definition_hash: "定义哈希",
	rules: "需要审批的原因",
	reasons: {
		"approval:always": "此工具每次调用前都需要审批。",
		"approval:when": "此工具的审批规则适用于这些参数。",
		"approval:when_failed": "此工具的审批规则无法求值，因此需要人工决定。",
		"approval:floor_mcp": "外部 MCP 服务器的工具始终需要审批。",
		"replay:write_asks": "实时重放时，每次非读取的调用都需要审批。",
	},
	taint: (label) => `参数中含有来自 ${label} 结果的文本。`,
	approver: "审批人",
	reason: "理由",
	reason_hint: "可选，会告知智能体。",
	approve: "批准",
	deny: "拒绝",
	view_only: ["此链接仅供查看。审批人可通过 API 作出决定：", "。"],
	once: "此链接只能使用一次，只批准这一次调用，不代表批准该工具。",
	spaces: (count) => `${count} 个空格`,
	show_all: (shown, total) => `显示全部（已显示 ${shown} / ${total} 个字符）`,
	folded: (parts, characters) =>
		`参数中有 ${parts} 处已折叠，共 ${characters} 个字符未显示。请先点击“显示全部”阅读，再作决定。`,
	empty_text: "（空文本）",
	statuses: {
		pending: "等待决定",
		approved: "已批准",
		denied: "已拒绝",
		expired: "已过期",
		superseded: "不再需要",
		consumed: "已批准，调用已开始执行",
	},
	outcome: "结果",
	decided_by: "决定人",
	by: { approve: "批准人", deny: "拒绝人" },
	superseded: {
		edited: "参数已被修改，此调用由另一次调用取代，并未执行。",
		cancelled: "任务已取消，此调用并未执行。",
		ended: "任务在此调用开始之前已结束，此调用并未执行。",
		taken_back: "此调用已被撤回，并未执行。",
		budget: "任务已用完允许的额度，此调用并未执行。",
		refused: "此调用在开始前被重新评估，已不再允许，并未执行。",
	},
	late: "您的决定来得太晚，没有被采纳。",
	colon: "：",
	thanks_approve: "您已批准此调用。",
	thanks_deny: "您已拒绝此调用。",
	gone_title: "此链接已使用或已过期",
	gone: "请向发送者索取新的链接。本次没有更改任何内容。",
	used_title: { approve: "此链接已使用：调用已获批准", deny: "此链接已使用：调用已被拒绝" },
	used: (when) => `决定时间：${when}。本次没有更改任何内容。`,
	missing_title: "链接不存在",
	missing: "地址不完整或从未有效。",
	trouble_title: "操作未成功",
	troubles: {
		reason_too_long: (length, max) =>
			`理由有 ${length} 个字符，最多 ${max} 个。没有作出任何决定。请返回缩短理由后重新提交。`,
		no_decision: "没有选择“批准”或“拒绝”，或两者都选了。没有作出任何决定。请返回并点击其中一个按钮。",
		not_this_page: "提交的表单不是来自此链接的页面。没有作出任何决定。请关闭本页，从消息中重新打开链接后再决定。",
		forbidden: "此链接不能作出决定：它仅供查看，或您已不再是此调用的审批人。没有作出任何决定。请联系发送者。",
		media_type: "提交的内容不是本页的表单。没有作出任何决定。请在浏览器中打开链接并使用页面上的按钮。",
		not_text: "提交的内容不完整，或不是 UTF-8 文本。没有作出任何决定。请重新打开链接并重新填写理由。",
		too_large: "提交的内容过长。没有作出任何决定。请返回缩短理由后重新提交。",
		later: "目前无法连接到服务。没有作出任何决定。请返回，稍后重试。",
		unknown: "与任务的连接中断，无法确定您的决定是否已送达。请稍后重新打开链接：如果页面仍在请求决定，则尚未作出决定。",
	},
	mail_subject: "请求审批",
	mail_intro: "智能体请求执行一次工具调用，需要您的决定。目前尚未执行任何操作。",
	mail_open: "请打开页面查看将要执行的确切内容并作出决定（打开页面不会作出任何决定）：",
	mail_outro: "此链接仅供您本人使用，且只能使用一次，请勿转发。",
};

export type { Words };

/** `tag`: a language tag such as `zh-CN`; anything but Chinese reads English. */
export function wordsFor(tag: string | undefined): Words {
	return /^zh\b/i.test(tag ?? "") ? zh : en;
}

/** The first language of `Accept-Language` by weight that there are words for. `asked` (`?lang=`) wins. */
export function languageOf(asked: string | undefined, accept: string | undefined): string {
	if (asked !== undefined && /^(zh|en)\b/i.test(asked)) return asked;
	const wanted = (accept ?? "")
		.split(",")
		.slice(0, 20)
		.map((part) => {
			const [tag = "", ...parameters] = part.trim().split(";");
			const weight = parameters.map((one) => /^\s*q=([\d.]+)\s*$/.exec(one)?.[1]).find((one) => one !== undefined);
			return { tag, weight: weight === undefined ? 1 : Number(weight) };
		})
		.filter(({ tag, weight }) => weight > 0 && /^(zh|en)\b/i.test(tag))
		.sort((a, b) => b.weight - a.weight);
	return wanted[0]?.tag ?? "en";
}
