/**
 * Tools of kind `sql`: a fixed SELECT over a dataset, a database of its own that belongs to the tenant and is never the
 * control database (decision 37). Arguments are bound, never spliced: whatever they hold stays a value. The statement is
 * judged again before each use, since the registry is stored data. It refuses to say what the database said: error texts
 * quote SQL and values. Called by the choke point only.
 */
import { compileFixedSql, type FixedSql } from "#core/data/fixed-sql.ts";
import { isJsonObject, type Json, type JsonObject, own, put } from "#core/json.ts";
import { RESULT_MAX_BYTES, ROWS_DEFAULT } from "#core/limits.ts";
import { failed, type InvokeOutcome } from "#core/outcome.ts";
import type { CancelSignal, Invocation, ToolInvoker } from "#core/ports.ts";
import { isPermanent, withinTime } from "./dataset-call.ts";

/** The tenant's dataset of that name, or undefined: another tenant's is as absent as one that does not exist. */
export type Datasets = (tenant_id: string, name: string) => D1Database | undefined;

export type SqlResult = {
	readonly columns: string[];
	/** One object per row, keyed by column. */
	readonly rows: JsonObject[];
	readonly truncated: boolean;
	/** How many rows the statement yields; null when they could not be counted in time. */
	readonly total_available: number | null;
};

export class SqlInvoker implements ToolInvoker {
	readonly #datasets: Datasets;
	readonly #row_cap: number;

	constructor(datasets: Datasets, row_cap: number = ROWS_DEFAULT) {
		this.#datasets = datasets;
		this.#row_cap = Math.min(row_cap, ROWS_DEFAULT);
	}

	async invoke(invocation: Invocation, signal: CancelSignal): Promise<InvokeOutcome> {
		const { implementation } = invocation.descriptor;
		if (implementation.kind !== "sql") return failed("internal", "not a tool of kind `sql`");
		const db = this.#datasets(invocation.tenant_id, implementation.dataset);
		if (db === undefined) return failed("not_configured", `there is no dataset \`${implementation.dataset}\` here`);
		const compiled = compileFixedSql(implementation.sql);
		if (!compiled.ok) return failed("security_blocked", "the tool's statement is not a single reading statement");
		const query = bind(compiled.statement, invocation.arguments, invocation.descriptor.input_schema);
		try {
			const read = this.#read(db, query, Date.now() + invocation.timeout_ms, signal);
			const outcome = await withinTime(read, invocation.timeout_ms, signal);
			if (outcome === "timeout") return { kind: "timeout", phase: "body", effect: "none" };
			if (outcome === "aborted") return failed("interrupted", "the query was cancelled");
			return this.#success(outcome, implementation.dataset);
		} catch (error) {
			return failed("dataset_error", `the dataset \`${implementation.dataset}\` could not answer the query`, {
				retryable: !isPermanent(error),
			});
		}
	}

	/** One row more than allowed shows that there are more; only then are they counted. */
	async #read(db: D1Database, query: BoundQuery, deadline: number, signal: CancelSignal): Promise<Raw> {
		const [columns, ...rows] = await db
			.prepare(`SELECT * FROM (${query.sql}) LIMIT ${this.#row_cap + 1}`)
			.bind(...query.values)
			.raw<unknown[]>({ columnNames: true });
		if (rows.length <= this.#row_cap) return { columns, rows, total: rows.length };
		const count = db
			.prepare(`SELECT count(*) AS n FROM (${query.sql})`)
			.bind(...query.values)
			.first<number>("n")
			.catch(() => null);
		// Half of what is left: rows that are here must not be lost because counting the rest takes too long, or for ever.
		const total = await withinTime(count, (deadline - Date.now()) / 2, signal);
		return { columns, rows: rows.slice(0, this.#row_cap), total: typeof total === "number" ? total : null };
	}

	#success(raw: Raw, dataset: string): InvokeOutcome {
		const { rows, rounded } = plainRows(raw);
		const truncated = raw.total !== rows.length;
		const result: SqlResult = { columns: raw.columns, rows, truncated, total_available: raw.total };
		const notes = rounded.map(
			(column) => `column \`${column}\` holds integers beyond 2^53-1 that were rounded: cast it to TEXT`,
		);
		if (truncated)
			notes.push(
				`only the first ${rows.length} of ${raw.total ?? "more"} rows are shown: aggregate or narrow the query`,
			);
		if (raw.total === 0) notes.push("the query found no rows");
		const facts = [`${rows.length} ${rows.length === 1 ? "row" : "rows"} from ${dataset}`];
		return { kind: "success", result, facts, notes };
	}
}

type Raw = { readonly columns: string[]; readonly rows: unknown[][]; readonly total: number | null };
type BoundQuery = { readonly sql: string; readonly values: readonly (string | number | null)[] };

/**
 * `:name` becomes `?NNN`. An absent argument is NULL, a boolean 0 or 1, an object or array its JSON text. D1 binds every
 * number as REAL (tried: `typeof(?)` of 5 is `real`, `5 || ''` is `5.0`), so a whole number is cast back unless the
 * schema asks for `number`, where 7 / 2 has to stay 3.5.
 */
function bind(statement: FixedSql, args: JsonObject, input_schema: unknown): BoundQuery {
	const properties = isJsonObject(input_schema) ? own(input_schema, "properties") : undefined;
	const place = (name: string): string => {
		const n = statement.parameters.indexOf(name) + 1;
		const declared = own(own(properties, name), "type");
		return Number.isSafeInteger(own(args, name)) && declared !== "number" ? `CAST(?${n} AS INTEGER)` : `?${n}`;
	};
	return {
		sql: statement.parts.map((part) => ("text" in part ? part.text : place(part.parameter))).join(""),
		values: statement.parameters.map((name) => bindable(own(args, name))),
	};
}

function bindable(value: Json | undefined): string | number | null {
	if (value === undefined || value === null) return null;
	if (typeof value === "boolean") return value ? 1 : 0;
	return typeof value === "object" ? JSON.stringify(value) : value;
}

/** Rows as plain JSON within the size of a result, and the columns whose integers D1 had to round. */
function plainRows(raw: Raw): { rows: JsonObject[]; rounded: string[] } {
	const rounded = new Set<string>();
	const rows: JsonObject[] = [];
	let chars = 0;
	for (const values of raw.rows) {
		const row: JsonObject = {};
		raw.columns.forEach((column, n) => {
			const value = values[n];
			if (Number.isInteger(value) && !Number.isSafeInteger(value)) rounded.add(column);
			put(row, column, plain(value));
		});
		// UTF-8 takes at most three bytes for one UTF-16 unit: never over the limit, whatever the script.
		chars += JSON.stringify(row).length;
		if (chars * 3 > RESULT_MAX_BYTES) break;
		rows.push(row);
	}
	return { rows, rounded: [...rounded] };
}

/** D1 gives a BLOB as an array of bytes: shown as hexadecimal text, as SQLite's own `hex()` would. */
function plain(value: unknown): Json {
	if (typeof value === "string") return value.toWellFormed();
	if (typeof value === "number") return Number.isFinite(value) ? value : null;
	if (typeof value === "boolean") return value;
	const bytes = value instanceof ArrayBuffer ? [...new Uint8Array(value)] : value;
	if (!Array.isArray(bytes)) return null;
	return bytes
		.map((byte) => Number(byte).toString(16).padStart(2, "0"))
		.join("")
		.toUpperCase();
}
