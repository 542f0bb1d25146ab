/** Writes the WASM binary format. Grows as needed; knows nothing of modules. */
export class ByteWriter {
	#bytes = new Uint8Array(256);
	#length = 0;

	#room(count: number): void {
		const need = this.#length + count;
		if (need <= this.#bytes.length) return;
		const grown = new Uint8Array(Math.max(this.#bytes.length * 2, need));
		grown.set(this.#bytes.subarray(0, this.#length));
		this.#bytes = grown;
	}

	u8(byte: number): this {
		this.#room(1);
		this.#bytes[this.#length++] = byte;
		return this;
	}

	/** Unsigned LEB128, 32 bits. */
	u32(value: number): this {
		let rest = value >>> 0;
		while (rest > 0x7f) {
			this.u8((rest & 0x7f) | 0x80);
			rest >>>= 7;
		}
		return this.u8(rest);
	}

	/** Signed LEB128 of a whole number from 0 to 2^53-1: charges are never negative. */
	s64(value: number): this {
		let rest = value;
		while (rest > 0x3f) {
			this.u8((rest % 128) | 0x80);
			rest = Math.floor(rest / 128);
		}
		return this.u8(rest);
	}

	raw(bytes: Uint8Array | readonly number[]): this {
		this.#room(bytes.length);
		this.#bytes.set(bytes, this.#length);
		this.#length += bytes.length;
		return this;
	}

	/** Length, then the bytes. */
	sized(bytes: Uint8Array): this {
		return this.u32(bytes.length).raw(bytes);
	}

	/** A name that is known to be ASCII (ours). */
	ascii(name: string): this {
		return this.u32(name.length).raw(Array.from(name, (letter) => letter.charCodeAt(0)));
	}

	done(): Uint8Array {
		return this.#bytes.slice(0, this.#length);
	}
}
