/** What is committed in `wasm-tools/built` is what the sources and the admission give: built again, byte for byte. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { type Built, buildAll, manifestText } from "#wasm/build.ts";
import { ENGINE_MEMORY_MAX_PAGES, WASM_MEMORY_MAX_PAGES } from "../limits.ts";
import { FUEL_EXPORT } from "./admit-module.ts";

const BUILT = new URL("../../wasm-tools/built/", import.meta.url);
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

describe("built modules", () => {
	let built: Built[] = [];
	beforeAll(async () => {
		built = await buildAll();
	}, 60_000);

	it("are all there and nothing else", () => {
		const expected = [...built.map(({ entry }) => `${entry.name}.wasm`), "manifest.json"].sort();
		expect(readdirSync(BUILT).sort()).toEqual(expected);
		expect(built.length).toBeGreaterThanOrEqual(5);
	});

	it("come out the same from their sources", () => {
		for (const { entry, bytes } of built) {
			const committed = readFileSync(new URL(`${entry.name}.wasm`, BUILT));
			expect([entry.name, sha256(committed)]).toEqual([entry.name, sha256(bytes)]);
			expect(entry.sha256).toBe(sha256(committed));
		}
	});

	it("are described by their manifest", () => {
		expect(readFileSync(new URL("manifest.json", BUILT), "utf8")).toBe(manifestText(built));
	});

	it("carry their fuel and their cap, and ask for nothing but what they may have", () => {
		for (const { entry, bytes } of built) {
			expect(WebAssembly.validate(bytes as BufferSource)).toBe(true);
			const isEngine = ["micropython", "quickjs"].includes(entry.name);
			expect(entry.memory_max_pages).toBe(isEngine ? ENGINE_MEMORY_MAX_PAGES : WASM_MEMORY_MAX_PAGES);
			if (!isEngine) for (const name of entry.imports) expect(name).toBe("harness.log");
			const Compiled = WebAssembly.Module as unknown as new (from: Uint8Array) => WebAssembly.Module;
			const names = WebAssembly.Module.exports(new Compiled(bytes)).map(({ name }) => name);
			expect(names).toContain(FUEL_EXPORT);
		}
	});
});
