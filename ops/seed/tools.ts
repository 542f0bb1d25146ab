/**
 * The tools of the development tenant, as they would be sent to `PUT /v1/tools/:tool_id`. With the demonstration data set
 * they answer the worked case (O6): how much more did product A sell than product B last quarter, and why?
 * Called by the seed.
 */
import type * as z from "zod";
import { toolDescriptor } from "#core/registry/descriptor.ts";

type Draft = z.input<typeof toolDescriptor>;

const QUARTER = { type: "string", pattern: "^20[0-9]{2}-Q[1-4]$", examples: ["2026-Q3"] };
const PRODUCTS = {
	type: "array",
	items: { type: "string", maxLength: 32 },
	minItems: 1,
	maxItems: 20,
	uniqueItems: true,
	description: "product ids; all products when left out",
	examples: [["A", "B"]],
};
const object = (properties: Record<string, unknown>, required: readonly string[]) => ({
	type: "object",
	properties,
	required: [...required],
	additionalProperties: false,
});
const rowsOf = (properties: Record<string, unknown>) =>
	object(
		{
			columns: { type: "array", items: { type: "string" } },
			rows: { type: "array", items: { type: "object", properties } },
			truncated: { type: "boolean" },
			total_available: { type: ["integer", "null"] },
		},
		["columns", "rows", "truncated", "total_available"],
	);
const PROGRAM_RESULT = object({ result: {}, stdout: { type: "string" } }, ["result"]);
const program = (language: string, how: string) =>
	object(
		{
			code: {
				type: "string",
				minLength: 1,
				maxLength: 20_000,
				"x-belay-kind": "code",
				description: `the ${language} program; ${how}`,
			},
			inputs: { type: "object", description: "data for the program, there as `inputs`" },
		},
		["code"],
	);

const SALES_SQL = `SELECT product, quarter, sum(units) AS units, sum(revenue_cents) AS revenue_cents
FROM sales
WHERE quarter >= :from_quarter AND quarter <= coalesce(:to_quarter, :from_quarter)
	AND (:products IS NULL OR product IN (SELECT value FROM json_each(:products)))
	AND (:region IS NULL OR region = :region)
GROUP BY product, quarter
ORDER BY quarter, product`;

const SPECS_SQL = `SELECT product_id, name, category, launched_on, price_cents, specs
FROM products
WHERE :products IS NULL OR product_id IN (SELECT value FROM json_each(:products))
ORDER BY product_id`;

const DRAFTS: readonly Draft[] = [
	{
		tool_id: "sales_query",
		name: "sales_query",
		version: "1.0.0",
		description:
			"Returns units sold and revenue (in cents) by product and quarter from the sales database, for one quarter or a range. It does not compare products, compute differences or explain causes: use code_execute_js or code_execute_python to compute and report_search for reasons.",
		category: "data_retrieval",
		capabilities: ["finance:query:sales"],
		tags: ["sales", "finance"],
		input_schema: object(
			{
				products: PRODUCTS,
				region: { type: "string", enum: ["North", "East", "South", "West"], description: "all regions when left out" },
				from_quarter: { ...QUARTER, description: "first quarter, as `2026-Q3`" },
				to_quarter: { ...QUARTER, description: "last quarter; the first one when left out" },
			},
			["from_quarter"],
		),
		output_schema: rowsOf({
			product: { type: "string" },
			quarter: { type: "string" },
			units: { type: "integer" },
			revenue_cents: { type: "integer" },
		}),
		implementation: { kind: "sql", dataset: "demo", sql: SALES_SQL },
		effect: "read",
		risk: "low",
		approval: { mode: "never" },
		semantic_rules: [
			{
				expr: "!has(args.to_quarter) || args.from_quarter <= args.to_quarter",
				field: "/from_quarter",
				message: "the first quarter must not come after the last",
			},
		],
		required_permissions: ["finance:query:sales"],
		timeout_ms: 5_000,
		idempotency: { mode: "natural" },
		example_queries: [
			"how much did product A and product B sell last quarter",
			"revenue by quarter in the East region",
			"产品A和产品B上季度销量是多少",
			"按季度查询华东区销售额",
		],
		aliases: ["db_query"],
	},
	{
		tool_id: "product_specs",
		name: "product_specs",
		version: "1.0.0",
		description:
			"Returns master data of products: name, category, launch date, list price (in cents) and technical specifications as JSON text. It does not return sales figures; use sales_query for those.",
		category: "data_retrieval",
		capabilities: ["catalog:query:product"],
		tags: ["product"],
		input_schema: object({ products: PRODUCTS }, []),
		output_schema: rowsOf({
			product_id: { type: "string" },
			name: { type: "string" },
			price_cents: { type: "integer" },
		}),
		implementation: { kind: "sql", dataset: "demo", sql: SPECS_SQL },
		effect: "read",
		risk: "low",
		approval: { mode: "never" },
		required_permissions: ["catalog:query:product"],
		timeout_ms: 5_000,
		idempotency: { mode: "natural" },
		cache: { tier: "static", scope: "tenant" },
		example_queries: [
			"which speaker has the longer battery life",
			"price of product C",
			"产品A的技术规格",
			"哪款音箱续航更长",
		],
	},
	{
		tool_id: "report_search",
		name: "report_search",
		version: "1.0.0",
		description:
			"Searches analysis reports on sales, supply and customers by full text, in English and Chinese, and returns the best passages with their source. It does not return figures or compute anything; use sales_query for numbers.",
		category: "retrieval",
		capabilities: ["vector:search:document"],
		tags: ["reports", "knowledge"],
		input_schema: object(
			{
				query: {
					type: "string",
					minLength: 1,
					maxLength: 500,
					description: "what to look for, in English or Chinese",
					examples: ["supply shortage product B", "产品A 促销"],
				},
				limit: { type: "integer", minimum: 1, maximum: 50, default: 5, description: "how many passages at most" },
			},
			["query"],
		),
		output_schema: object(
			{
				matches: {
					type: "array",
					items: object(
						{
							id: { type: "string" },
							score: { type: "number" },
							title: { type: "string" },
							text: { type: "string" },
							metadata: { type: "object" },
						},
						["id", "score", "title", "text", "metadata"],
					),
				},
				total: { type: "integer" },
			},
			["matches", "total"],
		),
		implementation: { kind: "retrieval", index: "reports", mode: "fulltext" },
		effect: "read",
		risk: "low",
		approval: { mode: "never" },
		required_permissions: ["vector:search:document"],
		timeout_ms: 5_000,
		idempotency: { mode: "natural" },
		example_queries: [
			"why did product A sell better than product B last quarter",
			"reports on supply shortage",
			"为什么产品A卖得比产品B好",
			"查找缺货和促销的分析报告",
		],
		aliases: ["vector_search"],
	},
	{
		tool_id: "code_execute_js",
		name: "code_execute_js",
		version: "1.0.0",
		description:
			"Runs a JavaScript program in a sandbox and returns its result and what it printed: arithmetic, statistics, reshaping of data handed in as `inputs`. It has no network, no files and no memory of earlier runs, and it does not fetch data; use sales_query or report_search for that.",
		category: "compute",
		capabilities: ["code:execute:javascript"],
		tags: ["code"],
		input_schema: program("JavaScript", "its last expression or returned value is the result"),
		output_schema: PROGRAM_RESULT,
		implementation: { kind: "code", language: "javascript", source: "/code", inputs: "/inputs" },
		effect: "read",
		risk: "low",
		approval: { mode: "never" },
		required_permissions: ["code:execute:javascript"],
		timeout_ms: 30_000,
		idempotency: { mode: "natural" },
		example_queries: [
			"compute the difference and the percentage",
			"average of these numbers",
			"计算两个产品的销量差额和百分比",
		],
	},
	{
		tool_id: "code_execute_python",
		name: "code_execute_python",
		version: "1.0.0",
		description:
			"Runs a Python program (MicroPython, without third-party packages) in a sandbox and returns its result and what it printed: arithmetic, statistics, reshaping of data handed in as `inputs`. It has no network, no files and no memory of earlier runs, and it does not fetch data; use sales_query or report_search for that.",
		category: "compute",
		capabilities: ["code:execute:python"],
		tags: ["code"],
		input_schema: program("Python", "the value of the variable `result` is the result"),
		output_schema: PROGRAM_RESULT,
		implementation: { kind: "code", language: "python", source: "/code", inputs: "/inputs" },
		effect: "read",
		risk: "low",
		approval: { mode: "never" },
		required_permissions: ["code:execute:python"],
		timeout_ms: 30_000,
		idempotency: { mode: "natural" },
		example_queries: ["calculate with python", "standard deviation of monthly sales", "用 Python 计算同比增长"],
		aliases: ["code_execute"],
	},
	{
		tool_id: "text_stats",
		name: "text_stats",
		version: "1.0.0",
		description:
			"Counts characters (code points), words and lines of a text, in a WASM sandbox. It does not judge, translate or summarize the text, and it takes runs between white space for words, so it does not count Chinese words.",
		category: "compute",
		capabilities: ["text:read:statistics"],
		tags: ["text", "wasm"],
		input_schema: object({ text: { type: "string", maxLength: 100_000, description: "the text to count" } }, ["text"]),
		output_schema: object({ characters: { type: "integer" }, words: { type: "integer" }, lines: { type: "integer" } }, [
			"characters",
			"words",
			"lines",
		]),
		implementation: { kind: "wasm", module: "text_stats" },
		effect: "read",
		risk: "low",
		approval: { mode: "never" },
		timeout_ms: 5_000,
		idempotency: { mode: "natural" },
		example_queries: ["how many words does this text have", "统计这段文字的字数"],
	},
	{
		tool_id: "notify_owner",
		name: "notify_owner",
		version: "1.0.0",
		description:
			"Sends a short message to the person in charge, by the channel `owner`, after a human has approved exactly this message. It does not reach anybody else, wait for an answer or send files.",
		category: "communication",
		capabilities: ["notify:send:owner"],
		tags: ["notification"],
		input_schema: object(
			{
				subject: {
					type: "string",
					minLength: 1,
					maxLength: 200,
					description: "one line",
					examples: ["Sales of last quarter"],
				},
				message: { type: "string", minLength: 1, maxLength: 4_000, description: "plain text, no markup" },
			},
			["subject", "message"],
		),
		implementation: { kind: "notify", channel: "owner" },
		effect: "external",
		risk: "high",
		approval: { mode: "always" },
		required_permissions: ["notify:send:owner"],
		timeout_ms: 15_000,
		idempotency: { mode: "key" },
		example_queries: ["tell the person in charge about the result", "notify the owner", "把结果通知负责人"],
	},
	{
		tool_id: "clock_now",
		name: "clock_now",
		version: "1.0.0",
		description:
			"Tells the present date and time in UTC, for questions such as which quarter was the last one. It does not convert time zones, set timers or know calendars and holidays.",
		category: "data_retrieval",
		capabilities: ["time:read:now"],
		tags: ["time"],
		input_schema: object({}, []),
		implementation: { kind: "builtin", name: "clock" },
		effect: "read",
		risk: "low",
		approval: { mode: "never" },
		timeout_ms: 1_000,
		idempotency: { mode: "natural" },
		example_queries: ["what is the date today", "which quarter is it", "现在是哪个季度"],
	},
	{
		tool_id: "echo",
		name: "echo",
		version: "1.0.0",
		description:
			"Returns its arguments as they arrived, after validation: a probe for clients and planners. It does not compute, store or send anything.",
		category: "data_retrieval",
		capabilities: ["test:read:echo"],
		tags: ["test"],
		input_schema: {
			type: "object",
			properties: { message: { type: "string", maxLength: 10_000 } },
			additionalProperties: true,
		},
		implementation: { kind: "builtin", name: "echo" },
		effect: "read",
		risk: "low",
		approval: { mode: "never" },
		timeout_ms: 1_000,
		idempotency: { mode: "natural" },
		example_queries: ["echo this message", "原样返回这条消息"],
	},
];

/** Every default filled in, ready to hash and store. */
export const DEMO_TOOLS = DRAFTS.map((draft) => toolDescriptor.parse(draft));
