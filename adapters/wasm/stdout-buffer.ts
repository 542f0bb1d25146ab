/**
 * What a program prints, up to a cap: a program that prints for ever fills neither the isolate nor the evidence. One
 * growing buffer, because a program may well print byte by byte.
 */
const FIRST_BYTES = 1_024;

export class StdoutBuffer {
	readonly #cap: number;
	#bytes = new Uint8Array(0);
	#length = 0;
	#truncated = false;

	constructor(cap: number) {
		this.#cap = cap;
	}

	get truncated(): boolean {
		return this.#truncated;
	}

	/** Copies at most what still fits; `bytes` may be a view of guest memory. */
	write(bytes: Uint8Array): void {
		const room = this.#cap - this.#length;
		if (bytes.length > room) this.#truncated = true;
		const kept = bytes.subarray(0, room);
		const need = this.#length + kept.length;
		if (need > this.#bytes.length) {
			const grown = new Uint8Array(Math.min(this.#cap, Math.max(FIRST_BYTES, need, this.#bytes.length * 2)));
			grown.set(this.#bytes.subarray(0, this.#length));
			this.#bytes = grown;
		}
		this.#bytes.set(kept, this.#length);
		this.#length = need;
	}

	writeLine(line: string): void {
		this.write(new TextEncoder().encode(`${line}\n`));
	}

	/** Text so far; bytes that are no UTF-8 (a character cut at the cap among them) become U+FFFD. */
	text(): string {
		return new TextDecoder("utf-8", { fatal: false, ignoreBOM: true }).decode(this.#bytes.subarray(0, this.#length));
	}
}
