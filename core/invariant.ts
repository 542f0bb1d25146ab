/** The third kind of failure: not a refusal, not a fault of the world, but Belay being wrong. It throws and is never caught as a value. */
export class InvariantBroken extends Error {
	override readonly name = "InvariantBroken";
}

/** Holds a truth that Belay itself must keep. Never used on input: bad input is a refusal. */
export function invariant(condition: unknown, message: string): asserts condition {
	if (!condition) throw new InvariantBroken(message);
}

/** Closes an exhaustive switch: a new member of the union fails the type check here. */
export function unreachable(value: never): never {
	throw new InvariantBroken(`unreachable: ${JSON.stringify(value)}`);
}
