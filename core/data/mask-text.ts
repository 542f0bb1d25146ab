/**
 * Masks free text (E3): known secret formats, `key = value` pairs whose key is sensitive, SQL literals, phone, national
 * id and card numbers. Errs towards masking; ids and hashes that Belay itself mints are left alone. Pure; called for
 * everything that is written to evidence, audit or a log, and for error messages.
 */
import { wellFormed } from "../json.ts";
import { maskPairs } from "./mask-pairs.ts";
import { maskInserts } from "./mask-sql.ts";
import { MASKED, maskIdentifier } from "./mask-value.ts";

/** A pass can uncover what it hid from itself at most a few times; then the text is stable. */
const PASSES_MAX = 4;

/** The masked text; masking it again gives the same. */
export function maskText(text: string): string {
	let masked = text;
	for (let pass = 0; pass < PASSES_MAX; pass++) {
		const next = maskNumbers(maskPairs(maskInserts(maskFormats(masked))));
		if (next === masked) break;
		masked = next;
	}
	// Canonical JSON, which evidence is, knows no half characters; a tool's words may hold some.
	return wellFormed(masked);
}

/** Secrets that can be told by their shape. What stays (a prefix, a scheme) says what was there. */
const FORMATS: readonly (readonly [RegExp, string])[] = [
	[
		/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g,
		`${MASKED} (private key)`,
	],
	[/\b(Bearer|Basic|Digest|ApiKey)[ \t]{1,4}[A-Za-z0-9+/=._~:-]{6,}/gi, `$1 ${MASKED}`],
	[/\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{2,}(?:\.[A-Za-z0-9_-]*)?/g, MASKED],
	[/\b(?:sk|pk|rk|ak|belay)[-_](?:[a-z]{2,12}[-_])?[A-Za-z0-9_-]{16,}/g, MASKED],
	[/\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|npm_|hf_|shpat_|whsec_|dop_v1_)[A-Za-z0-9_+/=-]{10,}/g, MASKED],
	[/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g, MASKED],
	[/\bAIza[A-Za-z0-9_-]{30,}/g, MASKED],
	// User and password in a URL or a connection string.
	[/(?<![a-z0-9+.-])([a-z][a-z0-9+.-]{1,20}:\/\/)[^\s/?#@"'<>]{1,256}@/gi, `$1${MASKED}@`],
];

function maskFormats(text: string): string {
	let masked = text;
	for (const [known, mask] of FORMATS) masked = masked.replace(known, mask);
	return masked;
}

const NUMBERS: readonly RegExp[] = [
	// National id of China: 17 digits with a plausible date, and a digit or X.
	/(?<!\d)\d{6}(?:18|19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dXx](?![\dXx])/g,
	// Mobile number of China, with or without country code and separators.
	/(?<!\d|\d\.)(?:(?:\+|00)?86[- ]?)?1[3-9]\d[- ]?\d{4}[- ]?\d{4}(?!\d)/g,
	// International: a plus and 8 to 15 digits.
	/(?<![\d+])\+[1-9](?:[ ().-]{0,2}\d){7,14}(?!\d)/g,
	// North American, and its social security number.
	/(?<!\d|\d[.-])\(?[2-9]\d{2}\)?[-. ][2-9]\d{2}[-. ]\d{4}(?!\d)/g,
	/(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])/g,
];
const CARD = /(?<!\d|\d\.)[2-6]\d{3}(?:[ -]?\d){9,15}(?!\d)/g;

function maskNumbers(text: string): string {
	if (!/\d/.test(text)) return text;
	let masked = text;
	for (const known of NUMBERS) masked = masked.replace(known, (found: string, ...rest) => maskUnlessId(found, rest));
	return masked.replace(CARD, (found: string, ...rest) => (isCard(found) ? maskUnlessId(found, rest) : found));
}

/** Digits inside a long word are part of a hash or an id (`call_…`, a digest, a trace), not somebody's number. */
function maskUnlessId(found: string, rest: unknown[]): string {
	const at = rest.find((one) => typeof one === "number") as number;
	const text = rest.at(-1) as string;
	const before = /[A-Za-z0-9_-]{0,64}$/.exec(text.slice(Math.max(0, at - 64), at))?.[0] ?? "";
	const after = /^[A-Za-z0-9_-]{0,64}/.exec(text.slice(at + found.length, at + found.length + 64))?.[0] ?? "";
	if (before.length + found.length + after.length >= 32 && /[A-Za-z]/.test(before + after)) return found;
	return maskIdentifier(found);
}

/** A length and first digit that a card network issues, and the Luhn check digit. */
function isCard(found: string): boolean {
	const digits = found.replace(/\D/g, "");
	if (digits.length === 13 && !digits.startsWith("4")) return false;
	if (digits.length === 14 && !digits.startsWith("3")) return false;
	if (digits.length === 15 && !/^3[47]/.test(digits)) return false;
	let sum = 0;
	[...digits].reverse().forEach((digit, at) => {
		const twice = Number(digit) * (at % 2 === 1 ? 2 : 1);
		sum += twice > 9 ? twice - 9 : twice;
	});
	return sum % 10 === 0;
}
