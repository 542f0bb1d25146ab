/**
 * What a JavaScript guest finds beside the language: `console` and `inputs`. Guest code, evaluated inside QuickJS before
 * the program; whatever the program does to these objects or to prototypes it does to itself. Built-ins that are used
 * after the program has run are kept aside first, so that a program cannot mislead its own error report.
 */
import { SANDBOX_RESULT_MAX_BYTES, STDOUT_MAX_BYTES } from "#core/limits.ts";

/**
 * A function expression: `(print, inputs_json) -> { describe(error), encode(value) }`. `describe` gives JSON text
 * `{type, message, stack}`; `encode` gives JSON text, `undefined` for what JSON cannot say, `0` for too much text.
 */
export const JAVASCRIPT_PRELUDE = `(function (print, inputs) {
	const { parse, stringify } = JSON;
	const slice = Function.prototype.call.bind(String.prototype.slice);
	const text = String;
	const ErrorClass = Error;
	const show = (value) => {
		if (typeof value === "string") return value;
		try {
			if (value instanceof ErrorClass) return value.name + ": " + value.message;
			if (typeof value === "object" && value !== null) return text(stringify(value));
			return text(value);
		} catch {
			return "[" + typeof value + "]";
		}
	};
	const log = (...values) => {
		let line = "";
		for (let i = 0; i < values.length && line.length <= ${STDOUT_MAX_BYTES}; i++) line += (i > 0 ? " " : "") + show(values[i]);
		print(slice(line, 0, ${STDOUT_MAX_BYTES + 1}));
	};
	globalThis.console = { log, info: log, warn: log, error: log, debug: log };
	globalThis.inputs = parse(inputs);
	const part = (read) => {
		try {
			return slice(text(read()), 0, 2000);
		} catch {
			return "";
		}
	};
	const isError = (value) => {
		try {
			return value instanceof ErrorClass;
		} catch {
			return false;
		}
	};
	// No prototype: a program may have given Object.prototype a toJSON.
	return {
		describe: (error) =>
			isError(error)
				? stringify({
						__proto__: null,
						type: part(() => error.name),
						message: part(() => error.message),
						stack: part(() => error.stack),
					})
				: stringify({ __proto__: null, type: typeof error, message: part(() => show(error)), stack: "" }),
		encode: (value) => {
			if (value === undefined) return "null";
			const json = stringify(value);
			return json !== undefined && json.length > ${SANDBOX_RESULT_MAX_BYTES} ? 0 : json;
		},
	};
})`;

/** Read once the program has run: its \`result\`, however it was declared at the top. */
export const READ_RESULT_VARIABLE = `typeof result === "undefined" ? undefined : result`;

/**
 * The program as the body of an async function, for programs with \`return\` or \`await\` at the top. Everything added stands
 * on the first line and behind the last, so lines keep their numbers.
 */
export function asFunctionBody(source: string): string {
	return `(async function () {${source}\n;return ${READ_RESULT_VARIABLE};})()`;
}
