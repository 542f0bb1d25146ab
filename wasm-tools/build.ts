/**
 * `npm run wasm:build`: compiles the tools, sends them and the two interpreters through the same admission as any upload
 * and writes `built/`. The outputs are committed; a test builds them again and compares every byte, so what runs is what
 * the sources say.
 *
 * Runs in Node only and is imported by nothing that is deployed.
 */
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { ENGINE_MEMORY_MAX_PAGES } from "#core/limits.ts";
import { type Admission, type AdmitOptions, admitModule } from "#core/sandbox/admit-module.ts";
import { admitTool } from "#core/sandbox/admit-tool.ts";

const HERE = fileURLToPath(new URL(".", import.meta.url));
/**
 * The compiler, with the part of its type that is used here: its own declarations would replace the global `console` of
 * the whole project by AssemblyScript's.
 */
type Compiler = {
	main(
		flags: string[],
		files: {
			readFile(name: string): string | null;
			writeFile(name: string, contents: Uint8Array | string): void;
			listFiles(): string[];
		},
	): Promise<{ error: Error | null; stderr: { toString(): string } }>;
};
/** The AssemblyScript tools, by folder. */
const TOOLS = ["echo", "spin", "text_stats"] as const;

/**
 * The interpreters. `initial_pages`: both ask for 16 MiB at the start, which says nothing about what a program uses and
 * costs time per instance; they grow on demand. QuickJS has 5 MiB of stack and data before its heap. Their imports are
 * glue, written or chosen by us: any function is allowed, and QuickJS has its memory handed in.
 */
const ENGINES = [
	{
		name: "micropython",
		file: import.meta.resolve("@micropython/micropython-webassembly-pyscript/micropython.wasm"),
		initial_pages: 8,
	},
	{ name: "quickjs", file: import.meta.resolve("@jitl/quickjs-wasmfile-release-sync/wasm"), initial_pages: 96 },
] as const;

const validate = (bytes: Uint8Array): boolean => WebAssembly.validate(bytes as BufferSource);

export type BuiltModule = {
	readonly name: string;
	readonly sha256: string;
	readonly imports: readonly string[];
	readonly exports: readonly string[];
	readonly memory_max_pages: number;
	readonly metered: true;
	/** Of the source text, or of the package's module for an interpreter. */
	readonly source_sha256: string;
};
export type Built = { readonly entry: BuiltModule; readonly bytes: Uint8Array };

/** Everything, in memory, ordered by name. Throws when a source does not compile or is not admitted. */
export async function buildAll(): Promise<Built[]> {
	const built: Built[] = [];
	for (const name of TOOLS) {
		const source = await readFile(`${HERE}${name}/assembly/index.ts`);
		built.push(entryOf(name, source, admitTool(await compile(name, source.toString("utf8")), validate)));
	}
	for (const engine of ENGINES) {
		const source = await readFile(new URL(engine.file));
		const options: AdmitOptions = {
			validate,
			memory_max_pages: ENGINE_MEMORY_MAX_PAGES,
			memory_initial_pages: engine.initial_pages,
			start_export: "__start",
			allowImport: ({ kind }) => kind === "func" || (kind === "memory" && engine.name === "quickjs"),
		};
		built.push(entryOf(engine.name, source, admitModule(source, options)));
	}
	return built.sort((a, b) => (a.entry.name < b.entry.name ? -1 : 1));
}

/**
 * `stub` runtime: it never frees, which suits one instance per call. No `env.abort`: a tool has no import but its
 * capabilities. `_start` is exported, so no start function runs before fuel is set.
 */
async function compile(name: string, source: string): Promise<Uint8Array> {
	const asc = (await import(import.meta.resolve("assemblyscript/asc"))) as Compiler;
	let binary: Uint8Array | undefined;
	const flags = ["-O3", "--runtime", "stub", "--use", "abort=", "--exportStart", "_start"];
	const { error, stderr } = await asc.main([`${name}.ts`, "--outFile", `${name}.wasm`, ...flags], {
		readFile: (file) => (file === `${name}.ts` ? source : null),
		writeFile: (_file, contents) => {
			if (typeof contents !== "string") binary = contents;
		},
		listFiles: () => [],
	});
	if (error !== null || binary === undefined) throw new Error(`${name} does not compile: ${stderr.toString()}`);
	return binary;
}

function entryOf(name: string, source: Uint8Array, admission: Admission): Built {
	if (!admission.ok) throw new Error(`${name} is not admitted (${admission.code}): ${admission.message}`);
	const { bytes, facts } = admission;
	return {
		bytes,
		entry: {
			name,
			sha256: sha256(bytes),
			imports: facts.imports.map((entry) => `${entry.module}.${entry.name}`),
			exports: facts.exports.map((entry) => entry.name),
			memory_max_pages: facts.memory.max,
			metered: true,
			source_sha256: sha256(source),
		},
	};
}

/** The manifest as it is committed: laid out as the formatter would, a short list on one line. */
export function manifestText(built: readonly Built[]): string {
	const spread = JSON.stringify(
		built.map(({ entry }) => entry),
		null,
		"\t",
	);
	const compact = spread.replace(/("\w+": )\[([^[\]]*)\]/g, (whole, key: string, items: string) => {
		const line = `[${items.trim().replace(/,\s+/g, ", ")}]`;
		return key.length + line.length < 114 ? key + line : whole;
	});
	return `${compact}\n`;
}

function sha256(bytes: Uint8Array): string {
	return createHash("sha256").update(bytes).digest("hex");
}

async function write(): Promise<void> {
	const directory = `${HERE}built/`;
	await mkdir(directory, { recursive: true });
	for (const file of await readdir(directory)) await rm(directory + file);
	const built = await buildAll();
	for (const { entry, bytes } of built) await writeFile(`${directory}${entry.name}.wasm`, bytes);
	await writeFile(`${directory}manifest.json`, manifestText(built));
	for (const { entry, bytes } of built) console.log(`${entry.name.padEnd(12)} ${bytes.length} bytes  ${entry.sha256}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await write();
