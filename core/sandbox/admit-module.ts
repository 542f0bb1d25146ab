/**
 * The door of the sandbox: bytes of an untrusted WASM module in, metered bytes out, or the reason why not. What comes out
 * stops by itself when its fuel is gone, cannot grow its memory or tables past the caps and imports what was allowed and
 * nothing else.
 *
 * It compiles nothing and runs nothing: core has no `WebAssembly`. The caller passes `validate` in (every upload does) and
 * the engine validates once more when it compiles the result.
 *
 * The fuel is an exported mutable i64 global, `FUEL_EXPORT`. The host sets it before a call; after a trap a negative value
 * says that fuel ran out. A module that has run dry stays negative, so a later call into it traps at once.
 */
import { ByteReader } from "./byte-reader.ts";
import { ByteWriter } from "./byte-writer.ts";
import {
	type Caps,
	capMemory,
	capTables,
	type FunctionType,
	type ModuleExport,
	type ModuleImport,
	type Pages,
	readExports,
	readFunctions,
	readImports,
	readTypes,
} from "./declarations.ts";
import { bulkHelper, type MeterContext, meterBody } from "./meter-body.ts";
import { Rejection, type RejectionCode, reject } from "./rejection.ts";
import { PREAMBLE, SECTION, SECTION_ORDER, type SectionId, splitSections } from "./sections.ts";

export const FUEL_EXPORT = "__fuel";

/** Bounds of the admission itself; a tool of honest size stays far below each of them. */
export const MODULE_MAX_BYTES = 4_194_304;
const FUNCTION_MAX_BYTES = 1_048_576;
const FUNCTIONS_MAX = 50_000;
const LOCALS_MAX = 4_096;
const TABLE_MAX_ENTRIES = 65_536;
const TABLES_MAX = 8;
/** Bulk memory moves about this many bytes for one fuel: 2^4. */
const BYTES_PER_FUEL_SHIFT = 4;

export type AdmitOptions = {
	/** `WebAssembly.validate`. Without it the result is still safe to compile, only the refusal comes later. */
	readonly validate?: (bytes: Uint8Array) => boolean;
	readonly memory_max_pages: number;
	/** Lowers the memory that the module asks for at the start. Only for engines that we prepare ourselves. */
	readonly memory_initial_pages?: number;
	/** Engines only: a start function becomes an export of this name, to be called once fuel is set. Else it is refused. */
	readonly start_export?: string;
	/** No import is allowed unless this says so. */
	readonly allowImport?: (wanted: ModuleImport) => boolean;
};

/** A function export with its type; other exports without. */
export type ExportFacts = ModuleExport & { readonly type?: FunctionType };
export type ModuleFacts = {
	readonly imports: readonly ModuleImport[];
	readonly exports: readonly ExportFacts[];
	/** Zero pages when the module has no memory. */
	readonly memory: Readonly<Pages>;
	readonly functions: number;
	readonly charges: number;
};

export type Admission =
	| { readonly ok: true; readonly bytes: Uint8Array; readonly facts: ModuleFacts }
	| { readonly ok: false; readonly code: RejectionCode; readonly message: string };

/** Checks and meters a module. Never throws on any input; the same bytes and options always give the same bytes. */
export function admitModule(bytes: Uint8Array, options: AdmitOptions): Admission {
	try {
		if (bytes.length > MODULE_MAX_BYTES) reject("limit", `${bytes.length} bytes, at most ${MODULE_MAX_BYTES}`);
		// Structure first: its messages name the reason, where the engine's validation says only yes or no.
		const admitted = meter(bytes, options);
		if (options.validate !== undefined && !options.validate(bytes)) reject("invalid", "the module does not validate");
		return { ok: true, ...admitted };
	} catch (error) {
		if (error instanceof Rejection) return { ok: false, code: error.code, message: error.message };
		throw error;
	}
}

function meter(bytes: Uint8Array, options: AdmitOptions): { bytes: Uint8Array; facts: ModuleFacts } {
	const sections = splitSections(bytes);
	const start = readStart(sections.get(SECTION.start), options.start_export);
	const caps: Caps = {
		memory_pages: options.memory_max_pages,
		initial_pages: options.memory_initial_pages,
		table_entries: TABLE_MAX_ENTRIES,
		tables: TABLES_MAX,
	};
	const types = readTypes(sections.get(SECTION.type));
	const allow = options.allowImport ?? (() => false);
	const imports = readImports(sections.get(SECTION.import), types.length, caps, allow);
	const defined = readFunctions(sections.get(SECTION.function), types.length, FUNCTIONS_MAX);
	const functions = [...imports.functions, ...defined];
	const memory = capMemory(sections.get(SECTION.memory), caps, imports.memory !== undefined);
	const ownGlobals = countOf(sections.get(SECTION.global));
	const fuel = imports.globals + ownGlobals;
	const spaces = { types: types.length, functions: functions.length, globals: fuel };
	const exported = readExports(sections.get(SECTION.export), spaces, FUEL_EXPORT);
	const context: MeterContext = {
		spaces,
		fuel,
		helpers: { bytes: functions.length, entries: functions.length + 1 },
		max_locals: LOCALS_MAX,
	};
	const code = meterCode(sections.get(SECTION.code), imports.functions.length, defined.length, context);

	const rewritten = new Map<SectionId, Uint8Array | undefined>(sections);
	// (i32) -> i32, the type of both helpers.
	rewritten.set(SECTION.type, appended(sections.get(SECTION.type), 1, [0x60, 1, 0x7f, 1, 0x7f]));
	rewritten.set(SECTION.import, imports.section);
	const helperType = new ByteWriter().u32(types.length).done();
	rewritten.set(SECTION.function, appended(sections.get(SECTION.function), 2, [...helperType, ...helperType]));
	rewritten.set(SECTION.table, capTables(sections.get(SECTION.table), caps));
	rewritten.set(SECTION.memory, memory.section);
	// A mutable i64, at first 0: whoever forgets to set fuel gets a trap, not an endless run.
	rewritten.set(SECTION.global, appended(sections.get(SECTION.global), 1, [0x7e, 0x01, 0x42, 0x00, 0x0b]));
	const more = new ByteWriter().ascii(FUEL_EXPORT).u8(3).u32(fuel);
	if (start !== undefined) more.ascii(start.name).u8(0).u32(start.index);
	rewritten.set(SECTION.export, appended(sections.get(SECTION.export), start === undefined ? 1 : 2, more.done()));
	rewritten.delete(SECTION.start);
	rewritten.set(SECTION.code, code.section);

	const facts: ModuleFacts = {
		imports: imports.list,
		exports: exported.map((entry) => withType(entry, functions, types)),
		memory: memory.memory ?? imports.memory ?? { min: 0, max: 0 },
		functions: defined.length,
		charges: code.charges,
	};
	return { bytes: assemble(rewritten), facts };
}

function meterCode(
	section: Uint8Array | undefined,
	imported: number,
	expected: number,
	context: MeterContext,
): { section: Uint8Array; charges: number } {
	const r = new ByteReader(section ?? new Uint8Array([0]));
	const count = r.u32();
	if (count !== expected) reject("malformed", "as many bodies as functions are needed");
	const w = new ByteWriter().u32(count + 2);
	let charges = 0;
	for (let at = 0; at < count; at++) {
		const size = r.u32();
		if (size > FUNCTION_MAX_BYTES) reject("limit", `function ${imported + at} has ${size} bytes`);
		const metered = meterBody(r.take(size), imported + at, context);
		charges += metered.charges;
		w.sized(metered.body);
	}
	r.finish("the code section");
	w.sized(bulkHelper(context.fuel, BYTES_PER_FUEL_SHIFT)).sized(bulkHelper(context.fuel, 0));
	return { section: w.done(), charges };
}

/** A start function runs while its instance is made, before anybody could give it fuel. */
function readStart(
	section: Uint8Array | undefined,
	name: string | undefined,
): { name: string; index: number } | undefined {
	if (section === undefined) return undefined;
	if (name === undefined) return reject("start", "a start function is not allowed: it would run before it has fuel");
	const r = new ByteReader(section);
	const index = r.u32();
	r.finish("the start section");
	return { name, index };
}

function countOf(section: Uint8Array | undefined): number {
	return section === undefined ? 0 : new ByteReader(section).u32();
}

/** A section's entries followed by `count` more. */
function appended(section: Uint8Array | undefined, count: number, entries: Uint8Array | readonly number[]): Uint8Array {
	if (section === undefined) return new ByteWriter().u32(count).raw(entries).done();
	const r = new ByteReader(section);
	const before = r.u32();
	return new ByteWriter()
		.u32(before + count)
		.raw(section.subarray(r.at))
		.raw(entries)
		.done();
}

function withType(entry: ModuleExport, functions: readonly number[], types: readonly FunctionType[]): ExportFacts {
	const type = entry.kind === "func" ? types[functions[entry.index] ?? -1] : undefined;
	return type === undefined ? entry : { ...entry, type };
}

function assemble(sections: ReadonlyMap<SectionId, Uint8Array | undefined>): Uint8Array {
	const w = new ByteWriter().raw(PREAMBLE);
	for (const id of SECTION_ORDER) {
		const body = sections.get(id);
		if (body !== undefined) w.u8(id).sized(body);
	}
	return w.done();
}
