/** A list in pieces of at most `size`, for statements that bind 100 values at most. */
export function* chunks<T>(list: readonly T[], size: number): Generator<readonly T[]> {
	for (let at = 0; at < list.length; at += size) yield list.slice(at, at + size);
}
