/**
 * What every repository throws when the control database does not answer, and the deadlines round its use. The message
 * names the operation and nothing else: errors of D1 and of Drizzle carry SQL and bound parameters, which would end in a
 * log, so they are neither quoted nor kept as `cause`.
 */
import { D1_READ_TRIES, D1_READ_TRY_MS, D1_WRITE_MS } from "#core/limits.ts";

export class D1Unavailable extends Error {
	override readonly name = "D1Unavailable";
	readonly operation: string;
	/** True when it kept silent, false when it answered with an error. */
	readonly timed_out: boolean;

	constructor(operation: string, timed_out: boolean) {
		super(`the control database did not answer: ${operation}`);
		this.operation = operation;
		this.timed_out = timed_out;
	}
}

export type D1Deadlines = { readonly read_try_ms: number; readonly read_tries: number; readonly write_ms: number };
export const D1_DEADLINES: D1Deadlines = {
	read_try_ms: D1_READ_TRY_MS,
	read_tries: D1_READ_TRIES,
	write_ms: D1_WRITE_MS,
};

/** Runs a read with a deadline, again when it fails. Throws `D1Unavailable` only. */
export async function readD1<T>(
	operation: string,
	work: () => Promise<T>,
	limits: D1Deadlines = D1_DEADLINES,
): Promise<T> {
	for (let n = 1; ; n++) {
		try {
			return await within(work(), limits.read_try_ms);
		} catch (error) {
			if (n >= limits.read_tries) throw new D1Unavailable(operation, error instanceof TooLate);
		}
	}
}

/** Runs a keyed write once. Throws `D1Unavailable` only; the write may have happened all the same. */
export async function writeD1<T>(
	operation: string,
	work: () => Promise<T>,
	limits: D1Deadlines = D1_DEADLINES,
): Promise<T> {
	try {
		return await within(work(), limits.write_ms);
	} catch (error) {
		throw new D1Unavailable(operation, error instanceof TooLate);
	}
}

class TooLate extends Error {}

/** The promise, or a rejection after `ms`. What comes later is dropped, its rejection included. */
async function within<T>(work: Promise<T>, ms: number): Promise<T> {
	let timer: ReturnType<typeof setTimeout> | undefined;
	const late = new Promise<never>((_, reject) => {
		timer = setTimeout(() => reject(new TooLate()), ms);
	});
	try {
		return await Promise.race([work, late]);
	} finally {
		clearTimeout(timer);
	}
}

/** One database for all tenants, or a function that picks the tenant's (decision 40: full rows outgrow one database). */
export type DatabaseSource = D1Database | ((tenant_id: string) => D1Database);

export function databaseOf(source: DatabaseSource): (tenant_id: string) => D1Database {
	return typeof source === "function" ? source : () => source;
}
