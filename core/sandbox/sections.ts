/**
 * Splits a module into its sections. Custom sections are dropped: nothing that runs needs them, and names and debug data
 * would only carry bytes that nobody has looked at.
 */
import { ByteReader } from "./byte-reader.ts";
import { reject } from "./rejection.ts";

export const SECTION = {
	type: 1,
	import: 2,
	function: 3,
	table: 4,
	memory: 5,
	global: 6,
	export: 7,
	start: 8,
	element: 9,
	code: 10,
	data: 11,
	data_count: 12,
} as const;
export type SectionId = (typeof SECTION)[keyof typeof SECTION];

/** The order in which a module has to list them; `data_count` stands before `code`. The tag section (13) is not here. */
export const SECTION_ORDER: readonly SectionId[] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11];

/** `\0asm`, version 1, layer 0. A component has another layer and is refused. */
export const PREAMBLE: readonly number[] = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];

export type Sections = ReadonlyMap<SectionId, Uint8Array>;

/** Throws `Rejection` on anything but a well-ordered list of known sections. */
export function splitSections(bytes: Uint8Array): Sections {
	if (bytes.length < PREAMBLE.length || PREAMBLE.some((byte, at) => bytes[at] !== byte))
		reject("not_wasm", "not a core WASM version 1 module (components are not taken)");
	const r = new ByteReader(bytes, PREAMBLE.length);
	const found = new Map<SectionId, Uint8Array>();
	let last = -1;
	while (!r.done) {
		const id = r.u8();
		const body = r.take(r.u32());
		if (id === 0) continue;
		const rank = SECTION_ORDER.indexOf(id as SectionId);
		if (rank < 0) reject("unsupported", id === 13 ? "exceptions (tag section)" : `section ${id}`);
		if (rank <= last) reject("malformed", `section ${id} is out of order`);
		last = rank;
		found.set(id as SectionId, body);
	}
	return found;
}
