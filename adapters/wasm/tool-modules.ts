/**
 * The WASM tools that are built in, by the name in `implementation.module`. Workers cannot compile bytes at run time, so a
 * module is here or it does not run. Each is loaded when it is first used.
 */
type Load = () => Promise<{ readonly default: WebAssembly.Module }>;

const MODULES: Readonly<Record<string, Load>> = {
	echo: () => import("../../wasm-tools/built/echo.wasm"),
	text_stats: () => import("../../wasm-tools/built/text_stats.wasm"),
};

/** Undefined when there is no such module; `constructor` is looked up like any other name. */
export async function toolModule(name: string): Promise<WebAssembly.Module | undefined> {
	const load = Object.hasOwn(MODULES, name) ? MODULES[name] : undefined;
	return load === undefined ? undefined : (await load()).default;
}
