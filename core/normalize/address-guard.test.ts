import { expect, test } from "vitest";
import vectors from "../../tests/fixtures/ssrf-vectors.json" with { type: "json" };
import { type AddressRules, judgeUrl, redirectRules, type UrlParts } from "./address-guard.ts";

/** What `adapters/http/url.ts` does; core's tests import no room above. */
function parseUrl(raw: string): UrlParts | undefined {
	if (!URL.canParse(raw)) return undefined;
	const { protocol, hostname, port, username, password } = new URL(raw);
	return { protocol, hostname, port, username, password, raw };
}

const NONE: AddressRules = { own_hosts: [], exemptions: [] };
const judge = (raw: string, rules: AddressRules = NONE) => {
	const parts = parseUrl(raw);
	return parts === undefined ? "not_a_url" : reason(parts, rules);
};
function reason(parts: UrlParts, rules: AddressRules): string {
	const verdict = judgeUrl(parts, rules);
	return verdict.ok ? "allow" : verdict.reason;
}

test("every vector is judged as listed, for its own reason", () => {
	expect(vectors.length).toBeGreaterThanOrEqual(189);
	const wrong = vectors
		.filter((one) => judge(one.url) !== one.expect)
		.map((one) => [one.url, one.expect, judge(one.url)]);
	expect(wrong).toEqual([]);
});

test("the parser canonicalises as the vectors say, so the guard judges the host that is called", () => {
	const wrong = vectors.filter((one) => (parseUrl(one.url)?.hostname ?? null) !== one.host).map((one) => one.url);
	expect(wrong).toEqual([]);
});

test("every blocked host is also blocked with an odd port, in capitals and behind a path", () => {
	const blocked = vectors.filter((one) => one.expect === "private_address" || one.expect === "internal_name");
	expect(blocked.length).toBeGreaterThan(80);
	for (const one of blocked) expect(judge(`http://${one.host?.toUpperCase()}:8123/a?b=c#d`), one.url).not.toBe("allow");
});

test("an exemption is one literal host:port over http", () => {
	const rules: AddressRules = { own_hosts: [], exemptions: ["127.0.0.1:4010"] };
	expect(judge("http://127.0.0.1:4010/x", rules)).toBe("allow");
	expect(judge("https://127.0.0.1:4010/x", rules)).toBe("private_address");
	expect(judge("http://127.0.0.1:4011/x", rules)).toBe("private_address");
	expect(judge("http://localhost:4010/x", rules)).toBe("internal_name");
	expect(judge("http://u@127.0.0.1:4010/x", rules)).toBe("credentials");
	expect(judge("http://127.0.0.1:4010\\@evil.test/", rules)).toBe("confusing_text");
});

test("an exemption is not reached by redirect", () => {
	const rules: AddressRules = { own_hosts: ["belay.example"], exemptions: ["127.0.0.1:4010"] };
	expect(judge("http://127.0.0.1:4010/x", redirectRules(rules))).toBe("private_address");
	expect(judge("https://belay.example/v1/runs", redirectRules(rules))).toBe("own_host");
});

test("Belay's own doors are closed in every spelling, exempted or not", () => {
	const rules: AddressRules = {
		own_hosts: ["Belay.Example.com", "127.0.0.1:8787", "api.example.org:8443"],
		exemptions: ["127.0.0.1:8787", "localhost:8787", "[::1]:8787", "127.0.0.1:4010", "10.0.0.5:4010"],
	};
	for (const url of [
		"https://belay.example.com/v1/runs",
		"https://BELAY.example.com./v1/runs",
		"https://belay.example.com:8443/",
		"http://127.0.0.1:8787/v1/approvals",
		"http://localhost:8787/v1/approvals",
		"http://[::1]:8787/v1/approvals",
		"https://api.example.org:8443/",
	]) {
		expect(judge(url, rules), url).toBe("own_host");
	}
	expect(judge("http://127.0.0.1:4010/", rules)).toBe("allow");
	expect(judge("https://api.example.org/", rules)).toBe("allow");
	expect(judge("https://sub.belay.example.com/", rules)).toBe("allow");
});

test("a URL longer than can be sent is refused", () => {
	expect(judge(`https://example.com/${"a".repeat(9_000)}`)).toBe("too_long");
});
