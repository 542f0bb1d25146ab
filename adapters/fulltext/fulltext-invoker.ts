/**
 * Tools of kind `retrieval` in mode `fulltext`: BM25 over an FTS5 table `fts_<index>` in a dataset of the tenant, with the
 * columns `id, title, text, metadata` (unindexed; metadata is JSON) and `title_terms, text_terms` (made by `indexTerms`).
 * The question is a stranger's text and reaches FTS5 only as quoted words. Vector and hybrid search are refused until an
 * index for them is bound. Called by the choke point only.
 */

import { isPermanent, withinTime } from "#adapters/sql/dataset-call.ts";
import { isJsonObject, type Json, type JsonObject, own } from "#core/json.ts";
import { MATCHES_DEFAULT, MATCHES_MAX } from "#core/limits.ts";
import { failed, type InvokeOutcome } from "#core/outcome.ts";
import type { CancelSignal, Invocation, ToolInvoker } from "#core/ports.ts";
import { type FullTextQuery, fullTextQuery } from "./terms.ts";

/** A word in the title says more about a document than one in its text. */
const TITLE_WEIGHT = 4;

/** The tenant's dataset that holds the index, or undefined. */
export type Indexes = (tenant_id: string, index: string) => D1Database | undefined;
/** `score` is positive, higher is better, comparable within one answer only. */
export type Match = { id: string; score: number; title: string; text: string; metadata: Json };

export class FullTextInvoker implements ToolInvoker {
	readonly #indexes: Indexes;

	constructor(indexes: Indexes) {
		this.#indexes = indexes;
	}

	/** Takes the arguments `query` (text) and `limit` (1..50, default 5); answers `{matches, total}`. */
	async invoke(invocation: Invocation, signal: CancelSignal): Promise<InvokeOutcome> {
		const { implementation } = invocation.descriptor;
		if (implementation.kind !== "retrieval") return failed("internal", "not a tool of kind `retrieval`");
		const { index, mode } = implementation;
		if (mode !== "fulltext")
			return failed(
				"not_configured",
				`retrieval mode \`${mode}\` needs a vector index and none is bound; use \`fulltext\``,
			);
		const db = /^[a-z][a-z0-9_-]{0,63}$/.test(index) ? this.#indexes(invocation.tenant_id, index) : undefined;
		if (db === undefined) return failed("not_configured", `there is no index \`${index}\` here`);
		const question = own(invocation.arguments, "query");
		if (typeof question !== "string") return failed("not_configured", "a retrieval tool needs a text argument `query`");
		const query = fullTextQuery(question);
		if (query === undefined) return answer(index, { matches: [], total: 0 }, ["the query holds no word to search for"]);
		try {
			const work = search(db, `fts_${index}`, query, limitOf(invocation.arguments));
			const found = await withinTime(work, invocation.timeout_ms, signal);
			if (found === "timeout") return { kind: "timeout", phase: "body", effect: "none" };
			if (found === "aborted") return failed("interrupted", "the search was cancelled");
			return answer(index, found, notesOn(found));
		} catch (error) {
			return failed("dataset_error", `the index \`${index}\` could not be searched`, {
				retryable: !isPermanent(error),
			});
		}
	}
}

type Found = { readonly matches: Match[]; readonly total: number; readonly loose?: boolean };

function answer(index: string, found: Found, notes: readonly string[]): InvokeOutcome {
	const { matches, total } = found;
	const facts = [`${matches.length} of ${total} ${total === 1 ? "match" : "matches"} from index ${index}`];
	return { kind: "success", result: { matches, total }, facts, notes };
}

function notesOn(found: Found): string[] {
	if (found.total === 0)
		return ["no document matches: infer from the data, and say that no report supports the answer"];
	return found.loose === true ? ["no document holds every word of the query: these hold some of them"] : [];
}

function limitOf(args: JsonObject): number {
	const asked = own(args, "limit");
	const limit = typeof asked === "number" ? Math.trunc(asked) : MATCHES_DEFAULT;
	return Math.min(Math.max(limit, 1), MATCHES_MAX);
}

/** Documents with every part of the question; where there are none, those with any. */
async function search(db: D1Database, table: string, query: FullTextQuery, limit: number): Promise<Found> {
	const strict = await ask(db, table, query.all, limit);
	if (strict.total > 0 || query.any === query.all) return strict;
	return { ...(await ask(db, table, query.any, limit)), loose: true };
}

type Stored = { id: unknown; title: unknown; text: unknown; metadata: unknown; score: number };

async function ask(db: D1Database, table: string, expression: string, limit: number): Promise<Found> {
	// bm25() is negative, better matches more so; weights go by column, the unindexed ones included.
	const score = `bm25("${table}", 0, 0, 0, 0, ${TITLE_WEIGHT}, 1)`;
	const [rows, count] = await db.batch<Stored & { n: number }>([
		db
			.prepare(
				`SELECT id, title, text, metadata, -${score} AS score FROM "${table}" WHERE "${table}" MATCH ?1 ORDER BY ${score}, id LIMIT ?2`,
			)
			.bind(expression, limit),
		db.prepare(`SELECT count(*) AS n FROM "${table}" WHERE "${table}" MATCH ?1`).bind(expression),
	]);
	return { matches: (rows?.results ?? []).map(asMatch), total: count?.results[0]?.n ?? 0 };
}

function asMatch(row: Stored): Match {
	const text = (value: unknown) => (typeof value === "string" ? value.toWellFormed() : String(value ?? ""));
	return {
		id: text(row.id),
		// FTS5 gives a word that most documents hold a weight of almost nothing: still a match, never zero or below.
		score: Math.max(row.score, Number.EPSILON),
		title: text(row.title),
		text: text(row.text),
		metadata: metadataOf(row.metadata),
	};
}

function metadataOf(value: unknown): Json {
	if (typeof value !== "string") return {};
	try {
		const parsed: unknown = JSON.parse(value);
		return isJsonObject(parsed) ? parsed : {};
	} catch {
		return {};
	}
}
