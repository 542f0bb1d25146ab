/**
 * One gate's rows in its own SQLite: its state as one small document, passes that are out, claims, and kept results in
 * pieces that fit a cell. It decides nothing but what the pure parts of core say. Only ToolGate uses it.
 */
import { type Breaker, CLOSED_BREAKER } from "#core/invoke/breaker.ts";
import { type Claim, claimEnds } from "#core/invoke/claim-window.ts";
import type { RateBucket } from "#core/invoke/rate-bucket.ts";
import { type Kept, makeRoom } from "#core/invoke/result-cache.ts";
import type { Json } from "#core/json.ts";
import { BODY_CHUNK_BYTES, CLAIM_WINDOW_MS } from "#core/limits.ts";
import type { Stored } from "./api.ts";

const SCHEMA = `
CREATE TABLE IF NOT EXISTS state (id INTEGER PRIMARY KEY CHECK (id = 1), doc TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS pass (tool_call_id TEXT PRIMARY KEY, entered_at INTEGER NOT NULL, hold_until INTEGER NOT NULL, generation INTEGER NOT NULL, ends INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS pass_by_end ON pass (ends);
CREATE TABLE IF NOT EXISTS claim (key TEXT PRIMARY KEY, owner TEXT NOT NULL, state TEXT NOT NULL, until INTEGER NOT NULL, ends INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS claim_by_end ON claim (ends);
CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, kind TEXT NOT NULL, bytes INTEGER NOT NULL, used INTEGER NOT NULL, expires_at INTEGER NOT NULL, at INTEGER NOT NULL, tool_call_id TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS kept_by_end ON kept (expires_at);
CREATE TABLE IF NOT EXISTS body (key TEXT NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (key, part)) WITHOUT ROWID;
`;

export type GateState = {
	readonly breaker: Breaker;
	readonly bucket: RateBucket | null;
	readonly paused_until: number | null;
	readonly hits: number;
	readonly misses: number;
	/** Grows with every invalidation: a read that began before one must not store what it saw. */
	readonly generation: number;
	/** Order of use of kept results. */
	readonly uses: number;
	/** What TenantControl was told last of `breaker.until`. */
	readonly published: number | null;
	/** The alarm that is set. */
	readonly alarm_at: number | null;
};

const FRESH: GateState = {
	breaker: CLOSED_BREAKER,
	bucket: null,
	paused_until: null,
	hits: 0,
	misses: 0,
	generation: 0,
	uses: 0,
	published: null,
	alarm_at: null,
};

export type Pass = { readonly entered_at: number; readonly hold_until: number; readonly generation: number };

export class GateStore {
	readonly #storage: DurableObjectStorage;
	readonly #sql: SqlStorage;

	constructor(storage: DurableObjectStorage) {
		this.#storage = storage;
		this.#sql = storage.sql;
		this.#sql.exec(SCHEMA);
	}

	/** All or nothing. */
	transaction<T>(work: () => T): T {
		return this.#storage.transactionSync(work);
	}

	state(): GateState {
		const row = this.#sql.exec<{ doc: string }>("SELECT doc FROM state").toArray()[0];
		return row === undefined ? FRESH : { ...FRESH, ...(JSON.parse(row.doc) as Partial<GateState>) };
	}

	/** Changes the named members. The rest is as it was. */
	patch(change: Partial<GateState>): void {
		const doc = JSON.stringify({ ...this.state(), ...change });
		this.#sql.exec("INSERT INTO state VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET doc = excluded.doc", doc);
	}

	pass(tool_call_id: string): Pass | null {
		const query = "SELECT entered_at, hold_until, generation FROM pass WHERE tool_call_id = ?";
		return this.#sql.exec<Pass>(query, tool_call_id).toArray()[0] ?? null;
	}

	/** Kept for a window past its hold, so that a lost call's late end still finds it. */
	putPass(tool_call_id: string, { entered_at, hold_until, generation }: Pass): void {
		const ends = hold_until + CLAIM_WINDOW_MS;
		const query = "INSERT OR REPLACE INTO pass VALUES (?, ?, ?, ?, ?)";
		this.#sql.exec(query, tool_call_id, entered_at, hold_until, generation, ends);
	}

	dropPass(tool_call_id: string): void {
		this.#sql.exec("DELETE FROM pass WHERE tool_call_id = ?", tool_call_id);
	}

	claim(key: string): Claim | null {
		return this.#sql.exec<Claim>("SELECT owner, state, until FROM claim WHERE key = ?", key).toArray()[0] ?? null;
	}

	putClaim(key: string, claim: Claim | null): void {
		if (claim === null) {
			this.#sql.exec("DELETE FROM claim WHERE key = ?", key);
			return;
		}
		const { owner, state, until } = claim;
		this.#sql.exec("INSERT OR REPLACE INTO claim VALUES (?, ?, ?, ?, ?)", key, owner, state, until, claimEnds(claim));
	}

	/** A kept result that has not expired, or null. Reading it makes it the latest used. */
	read(kind: Kept["kind"], key: string, now: number): Stored | null {
		const id = `${kind}:${key}`;
		const query = "SELECT at, tool_call_id FROM kept WHERE key = ? AND expires_at > ?";
		const row = this.#sql.exec<{ at: number; tool_call_id: string }>(query, id, now).toArray()[0];
		if (row === undefined) return null;
		this.#sql.exec("UPDATE kept SET used = ? WHERE key = ?", this.#nextUse(), id);
		const parts = this.#sql.exec<{ data: ArrayBuffer }>("SELECT data FROM body WHERE key = ? ORDER BY part", id);
		const decoder = new TextDecoder();
		let text = "";
		for (const { data } of parts) text += decoder.decode(data, { stream: true });
		const { result, notes } = JSON.parse(text + decoder.decode()) as { result: Json; notes: string[] };
		return { result, notes, at: row.at, tool_call_id: row.tool_call_id };
	}

	/** Keeps a result until `expires_at`, at the cost of older and less worthy ones. Too large a one is not kept. */
	keep(kind: Kept["kind"], key: string, stored: Stored, expires_at: number, now: number, max_bytes: number): void {
		const id = `${kind}:${key}`;
		const data = new TextEncoder().encode(JSON.stringify({ result: stored.result, notes: stored.notes }));
		const kept = this.#sql.exec<Kept>("SELECT key, kind, bytes, used, expires_at FROM kept").toArray();
		const room = makeRoom(kept, { key: id, kind, bytes: data.byteLength }, now);
		for (const old of room.drop) this.#drop(old);
		if (!room.fits || data.byteLength > max_bytes || expires_at <= now) return;
		const query = "INSERT INTO kept VALUES (?, ?, ?, ?, ?, ?, ?)";
		this.#sql.exec(query, id, kind, data.byteLength, this.#nextUse(), expires_at, stored.at, stored.tool_call_id);
		for (let part = 0; part * BODY_CHUNK_BYTES < data.byteLength; part++) {
			const piece = data.slice(part * BODY_CHUNK_BYTES, (part + 1) * BODY_CHUNK_BYTES);
			this.#sql.exec("INSERT INTO body VALUES (?, ?, ?)", id, part, piece);
		}
	}

	dropCached(): void {
		this.#dropAll(this.#sql.exec<{ key: string }>("SELECT key FROM kept WHERE kind = 'cache'").toArray());
	}

	/** What nobody can ask for any more goes. */
	sweep(now: number): void {
		this.#sql.exec("DELETE FROM pass WHERE ends <= ?", now);
		this.#sql.exec("DELETE FROM claim WHERE ends <= ?", now);
		this.#dropAll(this.#sql.exec<{ key: string }>("SELECT key FROM kept WHERE expires_at <= ?", now).toArray());
	}

	/** Sets the alarm for the first row that ends: an idle gate must not keep a tenant's data for ever. An early one rings in vain. */
	arm(now: number): void {
		const query =
			"SELECT min(at) AS at FROM (SELECT min(ends) AS at FROM pass UNION ALL SELECT min(ends) FROM claim UNION ALL SELECT min(expires_at) FROM kept)";
		const at = this.#sql.exec<{ at: number | null }>(query).one().at;
		const { alarm_at } = this.state();
		if (at === null || (alarm_at !== null && alarm_at > now && alarm_at <= at)) return;
		this.patch({ alarm_at: at });
		void this.#storage.setAlarm(at);
	}

	count(what: "cached" | "claims", now: number): number {
		const query =
			what === "cached"
				? "SELECT count(*) AS n FROM kept WHERE kind = 'cache' AND expires_at > ?"
				: "SELECT count(*) AS n FROM claim WHERE ends > ?";
		return this.#sql.exec<{ n: number }>(query, now).one().n;
	}

	#dropAll(rows: readonly { key: string }[]): void {
		for (const { key } of rows) this.#drop(key);
	}

	#drop(key: string): void {
		this.#sql.exec("DELETE FROM body WHERE key = ?", key);
		this.#sql.exec("DELETE FROM kept WHERE key = ?", key);
	}

	#nextUse(): number {
		const uses = this.state().uses + 1;
		this.patch({ uses });
		return uses;
	}
}
