/**
 * Waits for a promise or for an abort, whichever comes first: a platform promise that ignores its signal must not hold a
 * run for ever. The promise itself is left to settle alone. Called by the planners.
 */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
	let fail: () => void = () => undefined;
	const aborted = new Promise<never>((_, reject) => {
		fail = () => reject(new Error("aborted"));
		if (signal.aborted) fail();
		else signal.addEventListener("abort", fail);
	});
	promise.catch(() => undefined);
	try {
		return await Promise.race([promise, aborted]);
	} finally {
		signal.removeEventListener("abort", fail);
	}
}
