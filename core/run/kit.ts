/** The tools of a step: clock, randomness, ids, hashing and signing, all synchronous and all passed in. */

import type { RandomBytes } from "../ids.ts";
import type { ConcurrencyClass } from "../invoke/fair-queue.ts";
import type { Digest } from "../json.ts";
import type { StoredMessage } from "../planner/conversation.ts";
import type { CompiledTool } from "../registry/register.ts";
import type { RecordedCall } from "./recording.ts";
import type { CallRecord } from "./state.ts";

export type UrlVerdict = { readonly ok: true } | { readonly ok: false; readonly reason: string };

export type Kit = {
	/** Milliseconds since the epoch. */
	readonly now: number;
	readonly random: RandomBytes;
	readonly digest: Digest;
	/** Ed25519 over UTF-8 text, base64url. */
	readonly sign: (text: string) => string;
	/** Compiles a definition that this run has seen, by its hash. */
	readonly tool: (definition_hash: string) => CompiledTool;
	readonly judgeUrl: (url: string) => UrlVerdict;
	/** What the run has stored of its past, for the few rules that look back; synchronous, read when it is asked. */
	readonly past: {
		readonly callsOf: (turn: number) => readonly CallRecord[];
		readonly messages: () => readonly StoredMessage[];
		/** A replay's: what the planner of the recorded run was told of the calls of its n-th decision, from 0. */
		readonly told?: (n: number) => readonly (RecordedCall | null)[];
	};
	/** Keeps a reader of masked evidence from guessing short inputs from their hash (decision 26). */
	readonly tenant_salt: string;
	/** Takes one of the few places of a concurrency class for a call, or lines it up; synchronous, in memory (I8). */
	readonly takePlace: (concurrency: ConcurrencyClass, tool_call_id: string) => boolean;
	readonly boot_id: string;
	/** Environment attributes for expressions. */
	readonly environment: string;
};

/** ISO 8601 UTC with milliseconds. `new Date(ms)` only formats: no clock is read. */
export const iso = (ms: number): string => new Date(ms).toISOString();
