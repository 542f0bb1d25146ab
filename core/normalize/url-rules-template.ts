/**
 * Reads an RFC 6570 URL template without filling it: which names it takes, and how much of it is literal. It refuses
 * what the filling library would pass over in silence (stray braces, unknown operators). Called by `url-rules.ts` at
 * registration and by the http invoker before it fills the template.
 */
export type UrlTemplate = {
	/** Names of arguments that the template takes, each once, in order. */
	readonly names: readonly string[];
	/** Those without which the path would name another resource: `DELETE /items/{id}` with an empty id addresses `/items/`. */
	readonly required: readonly string[];
	/** `scheme://authority` when all of it is literal text, else undefined: then an argument chooses the host. */
	readonly origin: string | undefined;
	/**
	 * Who names the host. `literal`: the definition. `argument`: openly an argument, `{+url}` or `https://{host}/`.
	 * `blurred`: text that looks like a host and is not the whole of it, so that its author is deceived:
	 * `https://api.example.com{+path}` filled with `.evil.test/` or `@evil.test/`.
	 */
	readonly host: "literal" | "argument" | "blurred";
	/** Whether the literal origin is followed by a literal `/`: without it `{+path}` can append `@evil.test` (decision 35). */
	readonly rooted: boolean;
};

const NAME = "(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+(?:\\.(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+)*";
/** The fragment operator `#` is left out on purpose: a fragment is never sent. */
const EXPRESSION = new RegExp(`^[+./;?&]?${NAME}(?::[1-9]\\d{0,3}|\\*)?(?:,${NAME}(?::[1-9]\\d{0,3}|\\*)?)*$`);

/** The whole URL or its base by one argument, or plain expressions between literal scheme and literal `/`: their values cannot end the host early. */
const ARGUMENT_HOST = new RegExp(
	`^(?:\\{\\+${NAME}\\}(?:$|[/?])|https?://(?:[A-Za-z0-9.-]|\\{${NAME}\\})+(?::\\d+)?/)`,
	"i",
);

/** Undefined when the text is not a template that this service fills. */
export function readUrlTemplate(text: string): UrlTemplate | undefined {
	const names = new Set<string>();
	const required = new Set<string>();
	const rest = text.replace(/\{([^{}]*)\}/g, (_, expression: string) => {
		if (!EXPRESSION.test(expression)) return "{";
		const optional = /^[./;?&]/.test(expression); // these operators drop themselves with an absent value (RFC 6570)
		for (const spec of expression.replace(/^[+./;?&]/, "").split(",")) {
			const name = spec.replace(/(?::\d+|\*)$/, "");
			names.add(name);
			if (!optional) required.add(name);
		}
		return "";
	});
	if (/[{}]/.test(rest)) return undefined;
	const literal = /^([A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?#{}]+)(\/|[?#]|$|\{[/?])/.exec(text);
	const host = literal !== null ? "literal" : ARGUMENT_HOST.test(text) ? "argument" : "blurred";
	return { names: [...names], required: [...required], origin: literal?.[1], host, rooted: literal?.[2] === "/" };
}
