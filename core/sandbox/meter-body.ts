/**
 * Rewrites one function body: the same instructions with fuel charges between them. Branches name labels, not positions,
 * so inserting straight-line code changes no target and no index. Called by `admitModule` for each body.
 */
import { ByteReader } from "./byte-reader.ts";
import { ByteWriter } from "./byte-writer.ts";
import { ChargePoints } from "./charge-points.ts";
import { type Bulk, type IndexSpaces, isValueType, newInstruction, readInstruction } from "./opcodes.ts";
import { reject } from "./rejection.ts";

export type MeterContext = {
	readonly spaces: IndexSpaces;
	/** Index of the fuel global: the last one, so no other index moves. */
	readonly fuel: number;
	/** Helper functions that charge by an operand's size and hand it back. */
	readonly helpers: { readonly bytes: number; readonly entries: number };
	readonly max_locals: number;
};

/** `i64.sub; global.set fuel; global.get fuel; i64.const 0; i64.lt_s; if; unreachable; end`, the end of every charge. */
function settle(fuel: number, w: ByteWriter): void {
	w.u8(0x7d).u8(0x24).u32(fuel).u8(0x23).u32(fuel).raw([0x42, 0x00, 0x53, 0x04, 0x40, 0x00, 0x0b]);
}

function charge(fuel: number, cost: number, w: ByteWriter): void {
	w.u8(0x23).u32(fuel).u8(0x42).s64(cost);
	settle(fuel, w);
}

/**
 * A helper `(i32 n) -> n` that charges `n >> shift` fuel, unsigned: without it one `memory.fill` of many megabytes would
 * cost as little as one of a byte.
 */
export function bulkHelper(fuel: number, shift: number): Uint8Array {
	const w = new ByteWriter().u32(0).u8(0x23).u32(fuel);
	w.raw([0x20, 0x00, 0xad, 0x42]).s64(shift).u8(0x88); // local.get 0; i64.extend_i32_u; i64.const shift; i64.shr_u
	settle(fuel, w);
	return w.raw([0x20, 0x00, 0x0b]).done();
}

export type MeteredBody = { readonly body: Uint8Array; readonly charges: number };

/** Throws `Rejection`. `code` is one body without its size; `index` is for messages. */
export function meterBody(code: Uint8Array, index: number, context: MeterContext): MeteredBody {
	const r = new ByteReader(code);
	const locals = readLocals(r, index, context.max_locals);
	const entry = r.at;
	const points = new ChargePoints(entry, 1 + (locals >> 2));
	const bulk: { at: number; kind: Bulk }[] = [];
	const instruction = newInstruction();
	while (!points.done) {
		const at = r.at;
		readInstruction(r, context.spaces, instruction);
		if (instruction.bulk !== "none") bulk.push({ at, kind: instruction.bulk });
		points.step(instruction, r.at);
	}
	r.finish(`function ${index}`);

	const w = new ByteWriter();
	let copied = 0;
	const copyTo = (at: number): void => {
		w.raw(code.subarray(copied, at));
		copied = at;
	};
	const charges = points.points;
	let next = 0;
	for (const point of charges) {
		for (; next < bulk.length && (bulk[next]?.at ?? 0) < point.at; next++) emitBulk(bulk[next]);
		copyTo(point.at);
		charge(context.fuel, point.cost, w);
	}
	for (; next < bulk.length; next++) emitBulk(bulk[next]);
	copyTo(code.length);
	return { body: w.done(), charges: charges.length };

	function emitBulk(site: { at: number; kind: Bulk } | undefined): void {
		if (site === undefined) return;
		copyTo(site.at);
		w.u8(0x10).u32(site.kind === "bytes" ? context.helpers.bytes : context.helpers.entries);
	}
}

/** How many locals a body declares. A group may claim four thousand million of them in six bytes. */
function readLocals(r: ByteReader, index: number, max: number): number {
	let count = 0;
	for (let groups = r.u32(); groups > 0; groups--) {
		count += r.u32();
		if (count > max) reject("limit", `function ${index} has more than ${max} locals`);
		if (!isValueType(r.u8())) reject("unsupported", "a local of a refused type");
	}
	return count;
}
