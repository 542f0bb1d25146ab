/**
 * Why a WASM module is not admitted. The parsers throw `Rejection` inside this folder, where an answer per byte read would
 * drown the code; `admitModule` catches it and hands out a plain value. Nothing outside this folder sees the exception.
 */

/** Frozen literals: what `POST /v1/wasm-modules` says with 422. */
export const REJECTION_CODES = [
	/** More bytes, functions, locals, pages or table entries than allowed. */
	"limit",
	/** Not a core WASM version 1 module (a component, or no WASM at all). */
	"not_wasm",
	/** The bytes contradict themselves. */
	"malformed",
	/** WASM, and the engine's own validation refuses it. */
	"invalid",
	/** A feature that is refused on purpose: exceptions, threads, GC, memory64, relaxed SIMD. */
	"unsupported",
	/** An import that is not on the list. */
	"import",
	/** A reserved export name, or an export that the ABI demands and that is missing or of another shape. */
	"export",
	/** A start function would run before its fuel is set. */
	"start",
] as const;
export type RejectionCode = (typeof REJECTION_CODES)[number];

export class Rejection extends Error {
	readonly code: RejectionCode;
	constructor(code: RejectionCode, message: string) {
		super(message);
		this.code = code;
	}
}

export function reject(code: RejectionCode, message: string): never {
	throw new Rejection(code, message);
}
