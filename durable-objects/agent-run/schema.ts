/** The tables of one run. They come with the run: an object that was only probed keeps no storage. */
import { invariant } from "#core/invariant.ts";

/** A row per step: the run as it left it, of which only the last is read, and what it said. */
export const STEP_TABLE = "CREATE TABLE step (seq INTEGER PRIMARY KEY, run TEXT, doc TEXT NOT NULL);";

/** A call has one b-tree: those of a turn lie together (`placeOf`), and those that move are in memory. */
export const CALL_TABLE =
	"CREATE TABLE call (place INTEGER PRIMARY KEY, tool_call_id TEXT NOT NULL, state TEXT NOT NULL, doc TEXT NOT NULL);";

/** Calls that a run has room for in all. */
const PLACES_PER_TURN = 1_048_576;

/** The key of a call's row: by turn, then in the order in which calls came to be. With `n` 0 it is where the turn begins. */
export function placeOf(turn: number, n: number): number {
	const place = turn * PLACES_PER_TURN + n;
	invariant(n < PLACES_PER_TURN && Number.isSafeInteger(place), "a call has a place of its own");
	return place;
}

/** The turn of a call's row, in SQL. */
export const TURN_OF_PLACE = `place / ${PLACES_PER_TURN}`;

export const SCHEMA = `
CREATE TABLE run_request (id INTEGER PRIMARY KEY CHECK (id = 1), doc TEXT NOT NULL);
${CALL_TABLE}
CREATE TABLE approval (approval_id TEXT PRIMARY KEY, tool_call_id TEXT NOT NULL, status TEXT NOT NULL, seq INTEGER NOT NULL, doc TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE message (n INTEGER PRIMARY KEY, turn INTEGER NOT NULL, doc TEXT NOT NULL);
CREATE TABLE exposure (n INTEGER PRIMARY KEY, doc TEXT NOT NULL);
CREATE TABLE definition (definition_hash TEXT PRIMARY KEY, doc TEXT NOT NULL) WITHOUT ROWID;
${STEP_TABLE}
CREATE TABLE due (kind TEXT NOT NULL, ref TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (kind, ref)) WITHOUT ROWID;
CREATE TABLE flushed (id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL);
CREATE TABLE body (owner TEXT NOT NULL, part INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY (owner, part)) WITHOUT ROWID;
CREATE TABLE link (token_hash TEXT PRIMARY KEY, approval_id TEXT NOT NULL, doc TEXT NOT NULL, used_at INTEGER) WITHOUT ROWID;
CREATE TABLE request (key TEXT PRIMARY KEY, hash TEXT NOT NULL, turn INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE script (n INTEGER PRIMARY KEY, doc TEXT NOT NULL);
`;
