/** Randomness for the Worker: core asks for bytes and makes none. */
export function randomBytes(n: number): Uint8Array {
	return crypto.getRandomValues(new Uint8Array(n));
}
