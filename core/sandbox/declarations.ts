/**
 * Reads what a module declares about itself (types, imports, functions, exports) and rewrites its memory and table limits
 * to the caps. Everything before the code; called by `admitModule`.
 */
import { ByteReader } from "./byte-reader.ts";
import { ByteWriter } from "./byte-writer.ts";
import { isValueType } from "./opcodes.ts";
import { reject } from "./rejection.ts";

export const KINDS = ["func", "table", "memory", "global"] as const;
export type Kind = (typeof KINDS)[number];

/** Value types as bytes: 0x7f i32, 0x7e i64, 0x7d f32, 0x7c f64. */
export type FunctionType = { readonly params: readonly number[]; readonly results: readonly number[] };
export type ModuleImport = { readonly module: string; readonly name: string; readonly kind: Kind };
export type ModuleExport = { readonly name: string; readonly kind: Kind; readonly index: number };
export type Pages = { min: number; max: number };

export type Caps = {
	readonly memory_pages: number;
	/** Engines of our own only: their toolchain asks for more memory at the start than they need. */
	readonly initial_pages: number | undefined;
	readonly table_entries: number;
	readonly tables: number;
};

export function readTypes(section: Uint8Array | undefined): FunctionType[] {
	const types: FunctionType[] = [];
	if (section === undefined) return types;
	const r = new ByteReader(section);
	for (let n = r.u32(); n > 0; n--) {
		if (r.u8() !== 0x60) reject("unsupported", "a type of the GC proposal");
		types.push({ params: valueTypes(r), results: valueTypes(r) });
	}
	r.finish("the type section");
	return types;
}

function valueTypes(r: ByteReader): number[] {
	const list: number[] = [];
	for (let n = r.u32(); n > 0; n--) {
		const type = r.u8();
		if (!isValueType(type)) reject("unsupported", "a value type of a refused feature");
		list.push(type);
	}
	return list;
}

export type Imports = {
	readonly list: readonly ModuleImport[];
	/** Type index of every imported function. */
	readonly functions: readonly number[];
	readonly globals: number;
	readonly memory: Pages | undefined;
	/** The section again, with lowered limits. */
	readonly section: Uint8Array | undefined;
};

/**
 * An import is a capability: each one has to be allowed by name and kind. A list of names alone would let a module ask for
 * a memory where a function was meant.
 */
export function readImports(
	section: Uint8Array | undefined,
	types: number,
	caps: Caps,
	allow: (wanted: ModuleImport) => boolean,
): Imports {
	const list: ModuleImport[] = [];
	const functions: number[] = [];
	let globals = 0;
	let memory: Pages | undefined;
	if (section === undefined) return { list, functions, globals, memory, section };
	const r = new ByteReader(section);
	const count = r.u32();
	const w = new ByteWriter().u32(count);
	for (let n = count; n > 0; n--) {
		const from = r.at;
		const module = r.name();
		const name = r.name();
		const kind = KINDS[r.u8()] ?? reject("unsupported", "an import of an unknown kind");
		if (!allow({ module, name, kind })) reject("import", `import of ${kind} \`${module}.${name}\` is not allowed`);
		list.push({ module, name, kind });
		w.raw(section.subarray(from, r.at));
		const shape = r.at;
		if (kind === "func") {
			const type = r.u32();
			if (type >= types) reject("malformed", `type index ${type} does not exist`);
			functions.push(type);
			w.u32(type);
		} else if (kind === "memory") {
			if (memory !== undefined) reject("unsupported", "more than one memory");
			memory = memoryLimits(r, caps);
			writeLimits(w, memory);
		} else if (kind === "table") {
			tableType(r);
			w.u8(section[shape] as number);
			writeLimits(w, limits(r, caps.table_entries, "table entries"));
		} else {
			if (!isValueType(r.u8()) || r.u8() > 1) reject("malformed", "a global type");
			globals++;
			w.raw(section.subarray(shape, r.at));
		}
	}
	r.finish("the import section");
	return { list, functions, globals, memory, section: w.done() };
}

/** Type index of every function that the module defines. */
export function readFunctions(section: Uint8Array | undefined, types: number, max: number): number[] {
	const list: number[] = [];
	if (section === undefined) return list;
	const r = new ByteReader(section);
	const count = r.u32();
	if (count > max) reject("limit", `${count} functions, at most ${max}`);
	for (let n = count; n > 0; n--) {
		const type = r.u32();
		if (type >= types) reject("malformed", `type index ${type} does not exist`);
		list.push(type);
	}
	r.finish("the function section");
	return list;
}

export function capTables(section: Uint8Array | undefined, caps: Caps): Uint8Array | undefined {
	if (section === undefined) return undefined;
	const r = new ByteReader(section);
	const count = r.u32();
	if (count > caps.tables) reject("limit", `${count} tables, at most ${caps.tables}`);
	const w = new ByteWriter().u32(count);
	for (let n = count; n > 0; n--) {
		w.u8(tableType(r));
		writeLimits(w, limits(r, caps.table_entries, "table entries"));
	}
	r.finish("the table section");
	return w.done();
}

/** The memory section with its maximum written into the binary: no host has to remember it. */
export function capMemory(
	section: Uint8Array | undefined,
	caps: Caps,
	imported: boolean,
): { section: Uint8Array | undefined; memory: Pages | undefined } {
	if (section === undefined) return { section: undefined, memory: undefined };
	const r = new ByteReader(section);
	const count = r.u32();
	if (count + (imported ? 1 : 0) > 1) reject("unsupported", "more than one memory");
	const w = new ByteWriter().u32(count);
	let memory: Pages | undefined;
	if (count === 1) {
		memory = memoryLimits(r, caps);
		writeLimits(w, memory);
	}
	r.finish("the memory section");
	return { section: w.done(), memory };
}

/** Every export; an index beyond the original module is refused, because it would mean the fuel counter or its helpers. */
export function readExports(
	section: Uint8Array | undefined,
	counts: { readonly functions: number; readonly globals: number },
	reserved: string,
): ModuleExport[] {
	const list: ModuleExport[] = [];
	if (section === undefined) return list;
	const r = new ByteReader(section);
	for (let n = r.u32(); n > 0; n--) {
		const name = r.name();
		const kind = KINDS[r.u8()] ?? reject("unsupported", "an export of an unknown kind");
		const index = r.u32();
		if (name === reserved) reject("export", `the export name \`${reserved}\` is reserved`);
		const count = kind === "func" ? counts.functions : kind === "global" ? counts.globals : Number.POSITIVE_INFINITY;
		if (index >= count) reject("malformed", `exported ${kind} ${index} does not exist`);
		list.push({ name, kind, index });
	}
	r.finish("the export section");
	return list;
}

function tableType(r: ByteReader): number {
	const type = r.u8();
	if (type !== 0x70 && type !== 0x6f) reject("unsupported", "a table of another type than funcref and externref");
	return type;
}

function memoryLimits(r: ByteReader, caps: Caps): Pages {
	return limits(r, caps.memory_pages, "memory pages", caps.initial_pages);
}

function limits(r: ByteReader, cap: number, what: string, initial = Number.POSITIVE_INFINITY): Pages {
	const flags = r.u8();
	if (flags > 1) reject("unsupported", "shared or 64-bit memory");
	const min = Math.min(r.u32(), initial);
	const declared = flags === 1 ? r.u32() : Number.POSITIVE_INFINITY;
	if (min > cap) reject("limit", `${min} ${what} at the start, at most ${cap}`);
	return { min, max: Math.min(declared, cap) };
}

function writeLimits(w: ByteWriter, pages: Pages): void {
	w.u8(1).u32(pages.min).u32(pages.max);
}
