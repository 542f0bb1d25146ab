/**
 * Reads the WASM binary format from untrusted bytes. Never reads past its end and never trusts a length: every count is
 * paid for with bytes that are really there, so a forged count cannot make a loop longer than the module.
 */
import { reject } from "./rejection.ts";

export class ByteReader {
	readonly bytes: Uint8Array;
	readonly end: number;
	at: number;

	constructor(bytes: Uint8Array, from = 0, to = bytes.length) {
		this.bytes = bytes;
		this.at = from;
		this.end = to;
	}

	get done(): boolean {
		return this.at >= this.end;
	}

	u8(): number {
		if (this.at >= this.end) reject("malformed", "unexpected end of the module");
		return this.bytes[this.at++] as number;
	}

	/** Unsigned LEB128, 32 bits, at most five bytes. */
	u32(): number {
		let value = 0;
		for (let shift = 0; ; shift += 7) {
			const byte = this.u8();
			if (shift === 28 && (byte & 0xf0) !== 0) reject("malformed", "a number does not fit 32 bits");
			value |= (byte & 0x7f) << shift;
			if ((byte & 0x80) === 0) return value >>> 0;
		}
	}

	/** Steps over a signed LEB128 of at most `bytes` bytes; its value is of no interest to metering. */
	skipSigned(bytes: number): void {
		for (let read = 1; (this.u8() & 0x80) !== 0; read++) if (read >= bytes) reject("malformed", "a number is too long");
	}

	/** Signed LEB128 of 33 bits: a block type that names a type index. */
	s33(): number {
		let value = 0;
		for (let factor = 1, read = 1; ; factor *= 128, read++) {
			const byte = this.u8();
			if (read > 5) reject("malformed", "a number is too long");
			value += (byte & 0x7f) * factor;
			if ((byte & 0x80) === 0) return (byte & 0x40) === 0 ? value : value - factor * 128;
		}
	}

	skip(count: number): void {
		if (count > this.end - this.at) reject("malformed", "unexpected end of the module");
		this.at += count;
	}

	take(count: number): Uint8Array {
		const from = this.at;
		this.skip(count);
		return this.bytes.subarray(from, this.at);
	}

	/** A name: strict UTF-8, decoded without TextDecoder, which core does not have. */
	name(): string {
		const escaped = Array.from(this.take(this.u32()), (byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
		try {
			return decodeURIComponent(escaped);
		} catch {
			return reject("malformed", "a name is not UTF-8");
		}
	}

	/** Refuses what is left over: bytes that this parser skipped and an engine would read are where forgeries hide. */
	finish(what: string): void {
		if (this.at !== this.end) reject("malformed", `${what} has bytes left over`);
	}
}
