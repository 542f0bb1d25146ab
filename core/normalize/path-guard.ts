/**
 * Judges a text that a tool will use as a path: it must stay under the root it is resolved against, however it is
 * encoded. It looks at where the path leads after repeated decoding, not at a list of attack strings, so `a..b.txt` and
 * `résumé.pdf` pass. Called by normalize for parameters marked `path`.
 */
export type PathVerdict = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** Deeper encodings than anything honest; what still changes after it is refused. */
const DECODE_ROUNDS = 5;

export function judgePath(raw: string): PathVerdict {
	let text = raw;
	for (let round = 0; ; round += 1) {
		const problem = climbs(text);
		if (problem !== undefined) return { ok: false, reason: problem };
		const next = decodeOnce(text).normalize("NFKC");
		if (next === text) return { ok: true };
		if (round === DECODE_ROUNDS) return { ok: false, reason: "encoded too often" };
		text = next;
	}
}

/**
 * One round of every encoding that some layer below might undo: percent (UTF-8, overlong UTF-8, `%u`), HTML references,
 * escapes of string literals. Malformed ones stay.
 */
function decodeOnce(text: string): string {
	if (!/[%&\\]/.test(text)) return text;
	return (
		text
			.replace(/%u([0-9a-fA-F]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
			.replace(/%(?:c0|e0%80|f0%80%80|f8%80%80%80|fc%80%80%80%80)%([0-9a-f]{2})/gi, (_, low: string) =>
				String.fromCharCode(Number.parseInt(low, 16) & 0x7f),
			)
			.replace(/%c1%([0-9a-f]{2})/gi, (_, low: string) => String.fromCharCode((Number.parseInt(low, 16) & 0x3f) | 0x40))
			.replace(/%([0-7][0-9a-fA-F])/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
			// `%ef%bc%8f` is the full-width slash, which NFKC then makes a plain one
			.replace(/%(?:[cd][0-9a-f]%[89ab][0-9a-f]|e[0-9a-f](?:%[89ab][0-9a-f]){2}|f[0-7](?:%[89ab][0-9a-f]){3})/gi, utf8)
			.replace(/&#x([0-9a-fA-F]{1,6});?/g, (_, code: string) => character(Number.parseInt(code, 16)))
			.replace(/&#(\d{1,7});?/g, (_, code: string) => character(Number(code)))
			.replace(/&(period|sol|bsol|amp|percnt);/g, (_, name: string) => NAMED.get(name) ?? "")
			.replace(/\\(?:u\{?([0-9a-fA-F]{4,6})\}?|x([0-9a-fA-F]{2}))/g, (_, long?: string, short?: string) =>
				character(Number.parseInt(long ?? short ?? "", 16)),
			)
	);
}

const NAMED: ReadonlyMap<string, string> = new Map([
	["period", "."],
	["sol", "/"],
	["bsol", "\\"],
	["amp", "&"],
	["percnt", "%"],
]);

function utf8(escaped: string): string {
	try {
		return decodeURIComponent(escaped);
	} catch {
		return escaped;
	}
}

const character = (code: number): string => (code <= 0x10ffff ? String.fromCodePoint(code) : "");

/** Why a path, read as it is, leaves its root. */
function climbs(text: string): string | undefined {
	for (let i = 0; i < text.length; i += 1) {
		const code = text.charCodeAt(i);
		if (code < 0x20 || code === 0x7f) return "holds a control character";
	}
	// look-alikes of the separators that some file systems and shells fold
	const path = text.replace(/[\\\u2215\u2216\u29f5\u29f8\uff0f\uff3c\u2044]/g, "/");
	if (path.startsWith("/")) return "is absolute";
	if (/^[A-Za-z]:/.test(path)) return "names a drive";
	if (path.startsWith("~")) return "starts at a home directory";
	if (/^[a-z][a-z0-9+.-]*:\/\//i.test(path)) return "is a URL";
	// `x.php::$DATA` is x.php to Windows, under a name that no list of endings holds
	if (/:\$[a-z]/i.test(path)) return "names a stream";
	let depth = 0;
	for (const segment of path.split("/")) {
		// `.. ` and `..;x` are read as `..` by Windows and by some servers
		const name = segment.split(";")[0]?.trim() ?? "";
		if (/^\.{2,}$/.test(name)) depth -= 1;
		else if (name !== "" && name !== ".") depth += 1;
		if (depth < 0) return "leaves its root";
	}
	return undefined;
}

/**
 * Whether a part of the path is a device to Windows (`nul`, `COM1.txt`, `lpt¹`). Elsewhere such files are honest
 * (`drivers/i2c/aux.c`), so this is worth telling and no reason to block.
 */
export function namesDevice(path: string): boolean {
	return path
		.normalize("NFKC")
		.split(/[\\/]/)
		.some((segment) => /^ *(?:con|prn|aux|nul|conin\$|conout\$|com[0-9]|lpt[0-9]) *(?:[.:]|$)/i.test(segment));
}
