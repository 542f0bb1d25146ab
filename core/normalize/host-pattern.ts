/**
 * Hosts that a list names: `api.example.com` or `*.example.com`, either with a port. Called where a secret is bound to hosts,
 * and where an `http` tool lists the hosts that it may reach. Whether an address is public is the address guard's to say.
 */

const LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
/** An IP literal only when written out. A wildcard keeps two labels: `*.com` is half the world. */
const HOST_PATTERN = new RegExp(
	`^(?:(?:${LABEL}\\.)*${LABEL}|\\*\\.${LABEL}(?:\\.${LABEL})+|\\[[0-9a-f:.]+\\])(?::[1-9]\\d{0,4})?$`,
);

/** DNS names end at 253 characters; the bound also keeps the pattern's backtracking short. */
export function isHostPattern(text: string): boolean {
	return text.length <= 260 && HOST_PATTERN.test(text);
}

/** Whether `host` (`host[:port]`, the port absent when it is the scheme's own) is one of the patterns. A pattern without a port means the default port only. */
export function allowsHost(patterns: readonly string[], host: string): boolean {
	const given = host.toLowerCase();
	return patterns.some((pattern) => {
		if (!isHostPattern(pattern)) return false; // a row written before the rule was: it opens nothing
		if (!pattern.startsWith("*.")) return pattern === given;
		const suffix = pattern.slice(1);
		return given.endsWith(suffix) && given.length > suffix.length;
	});
}
