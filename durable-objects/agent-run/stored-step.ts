/**
 * The entries of a step as its row holds them: what one says that another has said already is not said again. A governed call
 * makes two steps, and a page of SQLite then holds both. Used by the run's log.
 */
import type { Json, JsonObject } from "#core/json.ts";
import type { AuditPart, LogRow } from "#core/run/effect.ts";

/** `from`: the number of the first entry; the row's key is that of the last. */
export type StoredStep = {
	readonly from: number;
	readonly at: string;
	readonly entries: readonly StoredEntry[];
};

type Entry = Pick<LogRow, "event" | "data" | "audit">;
type StoredEntry = Pick<LogRow, "event" | "data"> & {
	/** Most entries have none. Without `input_params` they are the record's `input`. */
	readonly audit?: (Omit<AuditPart, "input_params"> & { readonly input_params?: Json | undefined }) | null | undefined;
	/** `data` holds only what differs from the last entry before of the same event: it is of the same call. */
	readonly like?: true;
};

export function stored(entries: readonly LogRow[]): StoredEntry[] {
	const last = new Map<string, JsonObject>();
	return entries.map(({ event, data, audit }) => {
		const before = last.get(event);
		last.set(event, data);
		const entry = before !== undefined && alike(before, data) ? changed(event, before, data) : { event, data };
		if (audit === null) return entry;
		return { ...entry, audit: audit.input_params === data.input ? { ...audit, input_params: undefined } : audit };
	});
}

export function told(entries: readonly StoredEntry[]): Entry[] {
	const last = new Map<string, JsonObject>();
	return entries.map(({ event, data: said, audit, like }) => {
		const data = like === true ? { ...last.get(event), ...said } : said;
		last.set(event, data);
		return { event, data, audit: audit === undefined || audit === null ? null : wholeAudit(audit, data) };
	});
}

const wholeAudit = (audit: NonNullable<StoredEntry["audit"]>, data: JsonObject): AuditPart => ({
	...audit,
	input_params: (Object.hasOwn(audit, "input_params") ? audit.input_params : data.input) as Json,
});

/** Of the same call, with the same members in the same order. */
function alike(before: JsonObject, data: JsonObject): boolean {
	if (before.tool_call_id === undefined || before.tool_call_id !== data.tool_call_id) return false;
	return Object.keys(before).join() === Object.keys(data).join();
}

function changed(event: LogRow["event"], before: JsonObject, data: JsonObject): StoredEntry {
	const differs: JsonObject = {};
	for (const name in data) if (data[name] !== before[name]) differs[name] = data[name] as Json;
	return { event, data: differs, like: true };
}
