/** Vite's `?raw`: a file as text. */
declare module "*.sql?raw" {
	const text: string;
	export default text;
}
