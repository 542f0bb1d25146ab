/**
 * The worked case as a scripted planner plays it (O6). No figure is written down here: the sums come from the sales
 * database, the difference and the percentage from the sandbox, and the answer takes both by placeholder.
 */
import type { Json } from "#core/json.ts";

export const DEMO_GOAL = "How much more did product A sell than product B last quarter, and why?";

const call = (id: string, name: string, args: Json): Json => ({
	id,
	type: "function",
	function: { name, arguments: JSON.stringify(args) },
});

/** The last whole quarter that the demonstration data has. */
const QUARTER = "2026-Q3";

const COMPUTE = `units = {}
for row in inputs["rows"]:
    units[row["product"]] = row["units"]
difference = units["A"] - units["B"]
result = {
    "a": units["A"],
    "b": units["B"],
    "difference": difference,
    "percent": round(100 * difference / units["B"], 1),
}
`;

/** One decision per turn: look up twice in parallel, compute, tell the owner (a person must agree), answer. */
export const DEMO_SCRIPT: Json[] = [
	{
		content: null,
		tool_calls: [
			call("sales", "sales_query", { products: ["A", "B"], from_quarter: QUARTER }),
			call("reports", "report_search", { query: "product A promotion", limit: 3 }),
		],
	},
	{
		content: null,
		tool_calls: [
			call("compare", "code_execute_python", { code: COMPUTE, inputs: { rows: "{{calls.sales.result.rows}}" } }),
		],
	},
	{
		content: null,
		tool_calls: [
			call("tell", "notify_owner", {
				subject: `Sales of ${QUARTER}: A against B`,
				message:
					"Product A sold {{calls.compare.result.result.difference}} units more than product B ({{calls.compare.result.result.percent}} %). First source: {{calls.reports.result.matches.0.title}}.",
			}),
		],
	},
	{
		content: `In ${QUARTER} product A sold {{calls.compare.result.result.a}} units and product B {{calls.compare.result.result.b}}: {{calls.compare.result.result.difference}} more, or {{calls.compare.result.result.percent}} %. The reports that speak about the reasons: "{{calls.reports.result.matches.0.title}}": {{calls.reports.result.matches.0.text}}`,
	},
];
