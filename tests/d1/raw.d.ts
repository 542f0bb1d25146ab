/** Vite's `?raw`: a file as text. */
declare module "*.md?raw" {
	const text: string;
	export default text;
}
declare module "*.sql?raw" {
	const text: string;
	export default text;
}
