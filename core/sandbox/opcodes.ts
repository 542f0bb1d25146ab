/**
 * Decodes one instruction: where it ends, what it costs, how control leaves it. An opcode that is not listed is refused,
 * so a new WASM feature stays out until somebody has thought about its cost.
 *
 * Refused on purpose: exceptions (a `catch_all` would swallow what a host import throws), threads, GC, `call_ref`,
 * memory64, several memories, relaxed SIMD (not deterministic).
 */
import type { ByteReader } from "./byte-reader.ts";
import { reject } from "./rejection.ts";

/** How control goes on. `leave` never reaches the next instruction. */
export type Flow = "next" | "block" | "loop" | "if" | "else" | "end" | "br" | "br_if" | "br_table" | "leave";
/** Instructions whose work grows with an operand: bytes moved, or table entries touched. */
export type Bulk = "none" | "bytes" | "entries";

/** One decoded instruction. The decoder fills the same object again and again: a big module has half a million of them. */
export type Instruction = { flow: Flow; cost: number; bulk: Bulk; targets: number[] };

/**
 * How many of each there are in the ORIGINAL module. An index beyond it was invalid before metering and could mean the
 * fuel counter after it: `global.set <fuel>` must never become valid.
 */
export type IndexSpaces = { readonly types: number; readonly functions: number; readonly globals: number };

/** Prices in fuel, about 0.03 to 0.4 ns each on the machine where they were measured. */
const PLAIN = 1;
/** A dependent load that misses every cache costs tens of ns; 3 flattens the worst case. */
const LOAD = 3;
const STORE = 2;
const CALL = 4;
const CALL_INDIRECT = 8;
const DIVIDE = 4;
const VECTOR = 2;
const VECTOR_DIVIDE = 8;
const BULK = 8;
/** Flat: how far a memory can grow is capped anyway. */
const GROW = 2_000;

/** i32, i64, f32, f64, v128, funcref, externref. */
export function isValueType(byte: number): boolean {
	return (byte >= 0x7b && byte <= 0x7f) || byte === 0x70 || byte === 0x6f;
}

export function newInstruction(): Instruction {
	return { flow: "next", cost: 0, bulk: "none", targets: [] };
}

/** Reads one instruction at `r.at` into `out`. Throws `Rejection`. */
export function readInstruction(r: ByteReader, spaces: IndexSpaces, out: Instruction): void {
	out.flow = "next";
	out.cost = PLAIN;
	out.bulk = "none";
	const op = r.u8();
	if (op <= 0x13) {
		control(op, r, spaces, out);
		return;
	}
	if (op >= 0x28 && op <= 0x3e) {
		memoryArgument(r);
		out.cost = op <= 0x35 ? LOAD : STORE;
		return;
	}
	if (op >= 0x45 && op <= 0xc4) {
		out.cost = isDivision(op) ? DIVIDE : PLAIN;
		return;
	}
	switch (op) {
		case 0x1a: // drop
		case 0x1b: // select
		case 0xd1: // ref.is_null
			return;
		case 0x1c: // select with types
			for (let n = r.u32(); n > 0; n--) valueType(r);
			return;
		case 0x20: // local.get, set, tee
		case 0x21:
		case 0x22:
			r.u32();
			return;
		case 0x23: // global.get, set
		case 0x24:
			within(r.u32(), spaces.globals, "global");
			return;
		case 0x25: // table.get, set
		case 0x26:
			r.u32();
			out.cost = LOAD;
			return;
		case 0x3f: // memory.size
			firstMemory(r);
			return;
		case 0x40: // memory.grow
			out.cost = GROW;
			firstMemory(r);
			return;
		case 0x41: // i32.const
			r.skipSigned(5);
			return;
		case 0x42: // i64.const
			r.skipSigned(10);
			return;
		case 0x43: // f32.const
			r.skip(4);
			return;
		case 0x44: // f64.const
			r.skip(8);
			return;
		case 0xd0: {
			// ref.null
			const heap = r.u8();
			if (heap !== 0x70 && heap !== 0x6f) reject("unsupported", "a heap type other than func and extern");
			return;
		}
		case 0xd2: // ref.func
			within(r.u32(), spaces.functions, "function");
			return;
		case 0xfc:
			extended(r, out);
			return;
		case 0xfd:
			vector(r, out);
			return;
		default:
			unsupported(op);
	}
}

function control(op: number, r: ByteReader, spaces: IndexSpaces, out: Instruction): void {
	switch (op) {
		case 0x00: // unreachable
		case 0x0f: // return
			out.flow = "leave";
			return;
		case 0x01: // nop
			return;
		case 0x02:
		case 0x03:
		case 0x04:
			out.flow = op === 0x02 ? "block" : op === 0x03 ? "loop" : "if";
			out.cost = op === 0x02 ? 0 : PLAIN;
			blockType(r, spaces);
			return;
		case 0x05:
		case 0x0b:
			out.flow = op === 0x05 ? "else" : "end";
			out.cost = 0;
			return;
		case 0x0c:
		case 0x0d:
			out.flow = op === 0x0c ? "br" : "br_if";
			out.cost = op === 0x0c ? PLAIN : 2;
			out.targets.length = 0;
			out.targets.push(r.u32());
			return;
		case 0x0e: {
			out.flow = "br_table";
			out.cost = 3;
			out.targets.length = 0;
			for (let n = r.u32() + 1; n > 0; n--) out.targets.push(r.u32());
			return;
		}
		case 0x10: // call
		case 0x12: // return_call
			out.cost = CALL;
			out.flow = op === 0x12 ? "leave" : "next";
			within(r.u32(), spaces.functions, "function");
			return;
		case 0x11: // call_indirect
		case 0x13: // return_call_indirect
			out.cost = CALL_INDIRECT;
			out.flow = op === 0x13 ? "leave" : "next";
			within(r.u32(), spaces.types, "type");
			r.u32();
			return;
		default:
			unsupported(op);
	}
}

/** 0xfc: saturating truncation, bulk memory, tables. */
function extended(r: ByteReader, out: Instruction): void {
	const sub = r.u32();
	if (sub <= 7) return;
	out.cost = BULK;
	switch (sub) {
		case 8: // memory.init
			r.u32();
			out.bulk = "bytes";
			firstMemory(r);
			return;
		case 10: // memory.copy
			out.bulk = "bytes";
			firstMemory(r);
			firstMemory(r);
			return;
		case 11: // memory.fill
			out.bulk = "bytes";
			firstMemory(r);
			return;
		case 9: // data.drop
		case 13: // elem.drop
		case 16: // table.size
			r.u32();
			return;
		case 12: // table.init
		case 14: // table.copy
			r.u32();
			r.u32();
			out.bulk = "entries";
			return;
		case 15: // table.grow
		case 17: // table.fill
			r.u32();
			out.bulk = "entries";
			return;
		default:
			reject("unsupported", `opcode 0xfc ${sub}`);
	}
}

/** 0xfd: SIMD without the relaxed part. */
function vector(r: ByteReader, out: Instruction): void {
	const sub = r.u32();
	out.cost = VECTOR;
	if (sub > 0xff) reject("unsupported", "relaxed SIMD is not deterministic");
	if (sub <= 11 || sub === 92 || sub === 93) {
		memoryArgument(r);
		out.cost = LOAD;
	} else if (sub === 12 || sub === 13) r.skip(16);
	else if (sub >= 84 && sub <= 91) {
		memoryArgument(r);
		r.u8();
		out.cost = LOAD;
	} else if (sub >= 21 && sub <= 34) r.u8();
	else if (sub === 0xe3 || sub === 0xe7 || sub === 0xef || sub === 0xf3) out.cost = VECTOR_DIVIDE;
}

function isDivision(op: number): boolean {
	return (
		(op >= 0x6d && op <= 0x70) || // i32 div, rem
		(op >= 0x7f && op <= 0x82) || // i64 div, rem
		op === 0x91 || // f32.sqrt
		op === 0x95 || // f32.div
		op === 0x9f || // f64.sqrt
		op === 0xa3 // f64.div
	);
}

function blockType(r: ByteReader, spaces: IndexSpaces): void {
	const from = r.at;
	const byte = r.u8();
	if (byte === 0x40 || isValueType(byte)) return;
	r.at = from;
	const index = r.s33();
	if (index < 0) reject("unsupported", "a block type of a refused feature");
	within(index, spaces.types, "type");
}

function memoryArgument(r: ByteReader): void {
	const align = r.u32();
	if ((align & 0x40) !== 0) reject("unsupported", "more than one memory");
	if (align > 4) reject("malformed", "an alignment is too large");
	r.u32();
}

function firstMemory(r: ByteReader): void {
	if (r.u8() !== 0) reject("unsupported", "more than one memory");
}

function valueType(r: ByteReader): void {
	if (!isValueType(r.u8())) reject("unsupported", "a value type of a refused feature");
}

function within(index: number, count: number, what: string): void {
	if (index >= count) reject("malformed", `${what} index ${index} does not exist`);
}

function unsupported(op: number): never {
	return reject("unsupported", `opcode 0x${op.toString(16).padStart(2, "0")}`);
}
