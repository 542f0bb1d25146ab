/** The bundler turns an import of a `.wasm` file into a compiled module; nothing is compiled from bytes at run time. */
declare module "*.wasm" {
	const module: WebAssembly.Module;
	export default module;
}
