/** Randomness for core, which asks for bytes and makes none. */
import type { RandomBytes } from "#core/ids.ts";

const POOL_BYTES = 1_024;
const pool = new Uint8Array(POOL_BYTES);
let taken = POOL_BYTES;

/** Fresh bytes, never handed out twice. They are drawn a pool at a time: each draw has its own price, and a call needs three. */
export const randomBytes: RandomBytes = (n) => {
	if (n > POOL_BYTES) return crypto.getRandomValues(new Uint8Array(n));
	if (taken + n > POOL_BYTES) {
		crypto.getRandomValues(pool);
		taken = 0;
	}
	const fresh = pool.slice(taken, taken + n);
	pool.fill(0, taken, taken + n);
	taken += n;
	return fresh;
};
