/**
 * The tree as the architecture tests read it: every file that is, or would be, in the repository, with its text and what
 * it imports. Reads only; knows TypeScript by regular expression, since TypeScript 7 has no compiler API for tools.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { posix, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../..");

/** One file, by its path from the root of the repository with `/` between the parts. */
export type Source = { readonly path: string; readonly text: string };

/** All files of the working tree that git tracks or would track. Generated types and binary modules are left out. */
export function repositoryFiles(): Source[] {
	const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
		cwd: ROOT,
		encoding: "utf8",
	});
	const paths = [...new Set(listed.split("\0"))].filter(
		(path) => path !== "" && existsSync(resolve(ROOT, path)) && statSync(resolve(ROOT, path)).isFile(),
	);
	return paths
		.filter((path) => path !== "worker-configuration.d.ts" && !/\.(wasm|png|ico|gz|bin|zip)$/.test(path))
		.map((path) => ({ path, text: readFileSync(resolve(ROOT, path), "utf8") }))
		.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** The TypeScript among them. AssemblyScript (`wasm-tools/<name>/assembly`) is another language with the same ending. */
export function typescript(files: readonly Source[]): Source[] {
	return files.filter(({ path }) => /\.tsx?$/.test(path) && !/^wasm-tools\/.+\/assembly\//.test(path));
}

export const isTest = (path: string): boolean => /\.test\.tsx?$/.test(path) || path.startsWith("tests/");

/** The text with comments and plain string contents blanked, line for line; template literals keep their code. */
export function codeOf(text: string): string {
	const blank = (found: string): string => found.replaceAll(/[^\n]/g, " ");
	return text.replaceAll(
		/\/\*[\s\S]*?\*\/|(?<![:"'`\\])\/\/[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g,
		(found) => (found.startsWith("/") ? blank(found) : `"${" ".repeat(found.length - 2)}"`),
	);
}

const IMPORT =
	/(?:^|[\n;])\s*(?:import|export)\s+(?:type\s+)?(?:[\w*{}\s,$]+?\s+from\s+)?"([^"\n]+)"|\bimport\(\s*"([^"\n]+)"\s*\)/g;

/** Every module named by an import, a re-export or a dynamic import of the file, as written. */
export function importsOf(source: Source): string[] {
	const text = source.text.replaceAll(/\/\*[\s\S]*?\*\//g, "").replaceAll(/^\s*\/\/[^\n]*/gm, "");
	return [...text.matchAll(IMPORT)].map((found) => found[1] ?? found[2] ?? "");
}

const ALIASES: Readonly<Record<string, string>> = {
	"#core/": "core/",
	"#adapters/": "adapters/",
	"#objects/": "durable-objects/",
	"#wasm/": "wasm-tools/",
	"#ops/": "ops/",
};

/** The file of this repository that an import leads to, or undefined when it names a package or a runtime module. */
export function target(from: string, specifier: string): string | undefined {
	specifier = specifier.replace(/\?\w+$/, "");
	if (specifier.startsWith(".")) return posix.normalize(posix.join(posix.dirname(from), specifier));
	for (const [alias, folder] of Object.entries(ALIASES))
		if (specifier.startsWith(alias)) return folder + specifier.slice(alias.length);
	return undefined;
}

/** The first folder of a path: the room it is in. */
export const roomOf = (path: string): string => (path.includes("/") ? (path.split("/")[0] ?? "") : "");
