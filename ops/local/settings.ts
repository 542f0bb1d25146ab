/**
 * Checks of the environment that `npm start` is given, with the parsers that the Worker itself uses. The Worker cannot
 * refuse to start: there a wrong setting shows only when somebody needs it. Called by start before anything runs.
 */
import { strictMode } from "#core/planner/strict-schema.ts";
import { requestTokens } from "#core/planner/token-estimate.ts";
import { readPrices } from "#objects/agent-run/prices.ts";

/** As `URL` writes a host: a name, an IPv4 address, or an IPv6 address in brackets. */
function isUpstream(text: string): boolean {
	const port = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})$/.exec(text)?.[1];
	return port !== undefined && Number(port) >= 1 && Number(port) <= 65_535 && URL.canParse(`http://${text}`);
}

const upstreams = (text: string): boolean =>
	text
		.split(",")
		.map((one) => one.trim())
		.every((one) => one === "" || isUpstream(one));

const CHECKS = {
	BELAY_DEV_UPSTREAMS: { takes: upstreams, form: "`host:port`, several with commas between, as `127.0.0.1:9000`" },
	BELAY_PLANNER_PRICES: {
		takes: (text) => readPrices(text) !== undefined,
		form: 'JSON by model, in US dollars per million tokens, as `{"deepseek-flash":{"prompt":0.1,"completion":0.4}}`',
	},
	BELAY_PLANNER_STRICT: { takes: (text) => strictMode(text) !== undefined, form: "`each` or `all`" },
	BELAY_PLANNER_CONTEXT_TOKENS: {
		takes: (text) => requestTokens(null, text) !== null,
		form: "a whole number of at least 4096",
	},
} as const satisfies Record<string, { takes: (text: string) => boolean; form: string }>;

/** What is wrong with the first setting that is, or null. An empty setting is none. */
export function settingFault(env: Readonly<Record<string, string | undefined>>): string | null {
	for (const [name, { takes, form }] of Object.entries(CHECKS)) {
		const text = env[name] ?? "";
		if (text !== "" && !takes(text)) return `${name} \`${text}\` cannot be read; expected: ${form}`;
	}
	return null;
}
