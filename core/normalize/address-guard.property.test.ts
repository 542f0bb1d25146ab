import { expect, test } from "vitest";
import { judgeUrl, type UrlParts } from "./address-guard.ts";

/** What `adapters/http/url.ts` does; core's tests import no room above. */
function parseUrl(raw: string): UrlParts | undefined {
	if (!URL.canParse(raw)) return undefined;
	const { protocol, hostname, port, username, password } = new URL(raw);
	return { protocol, hostname, port, username, password, raw };
}

const SEED = 20_261_130;
const CASES = 4_000;

/** mulberry32: small, seeded, enough to choose test cases. */
function generator(seed: number): (below: number) => number {
	let state = seed >>> 0;
	return (below) => {
		state = (state + 0x6d2b79f5) >>> 0;
		let t = state;
		t = Math.imul(t ^ (t >>> 15), t | 1);
		t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
		return ((t ^ (t >>> 14)) >>> 0) % below;
	};
}

type Octets = [number, number, number, number];

/** An address inside a network: [first octets, ...] filled up at random. */
function insideAddress(pick: (below: number) => number): Octets {
	const prefixes: number[][] = [
		[10],
		[127],
		[0],
		[169, 254],
		[192, 168],
		[172, 16 + pick(16)],
		[100, 64 + pick(64)],
		[224 + pick(32)],
		[198, 18 + pick(2)],
		[192, 0, 0],
	];
	const prefix = prefixes[pick(prefixes.length)] ?? [10];
	return [0, 1, 2, 3].map((at) => prefix[at] ?? pick(256)) as Octets;
}

function publicAddress(pick: (below: number) => number): Octets {
	return [11 + pick(80), 1 + pick(254), pick(256), pick(256)];
}

const BASES = [
	(n: number) => String(n),
	(n: number) => `0x${n.toString(16)}`,
	(n: number) => `0X${n.toString(16).toUpperCase()}`,
	(n: number) => `0${n.toString(8)}`,
];

/** One of the ways the URL standard (or an IPv6 literal) spells an IPv4 address. */
function spell([a, b, c, d]: Octets, pick: (below: number) => number): string {
	const part = (n: number) => (BASES[pick(BASES.length)] as (n: number) => string)(n);
	const whole = ((a * 256 + b) * 256 + c) * 256 + d;
	const hex = [(a << 8) | b, (c << 8) | d].map((n) => n.toString(16)).join(":");
	const dotted = [a, b, c, d].join(".");
	const spellings: (() => string)[] = [
		() => [a, b, c, d].map(part).join("."),
		() => [part(a), part(b), part(c * 256 + d)].join("."),
		() => [part(a), part((b * 256 + c) * 256 + d)].join("."),
		() => part(whole),
		() => `${dotted}.`,
		() => dotted.replaceAll(".", "。"),
		() => Array.from(dotted, (digit) => (digit === "." ? "." : String.fromCodePoint(0xff10 + Number(digit)))).join(""),
		() => dotted.replaceAll(".", "%2e"),
		() => `[::ffff:${dotted}]`,
		() => `[::ffff:${hex}]`,
		() => `[0:0:0:0:0:FFFF:${hex.toUpperCase()}]`,
		() => `[::${hex}]`,
		() => `[::ffff:0:${dotted}]`,
		() => `[64:ff9b::${hex}]`,
		() => `[64:ff9b:1::${hex}]`,
		() => `[2002:${hex}::]`,
	];
	return (spellings[pick(spellings.length)] as () => string)();
}

const verdict = (url: string) => {
	const parts = parseUrl(url);
	return parts === undefined ? undefined : judgeUrl(parts, { own_hosts: [], exemptions: [] });
};

test(`addresses inside a network are blocked however they are spelt (seed ${SEED})`, () => {
	const pick = generator(SEED);
	let parsed = 0;
	for (let n = 0; n < CASES; n++) {
		const url = `${pick(2) === 0 ? "http" : "https"}://${spell(insideAddress(pick), pick)}${pick(3) === 0 ? `:${1024 + pick(60_000)}` : ""}/${pick(10)}`;
		const found = verdict(url);
		if (found !== undefined) parsed++;
		expect(found?.ok ?? false, `${url} (seed ${SEED}, case ${n})`).toBe(false);
	}
	expect(parsed).toBeGreaterThan(CASES * 0.95);
});

test(`public IPv4 addresses pass in every numeric spelling (seed ${SEED})`, () => {
	const pick = generator(SEED + 1);
	for (let n = 0; n < CASES; n++) {
		const [a, b, c, d] = publicAddress(pick);
		const spelt = [a, b, c, d].map((one) => (BASES[pick(BASES.length)] as (n: number) => string)(one)).join(".");
		expect(verdict(`http://${spelt}/`), `${spelt} (seed ${SEED + 1}, case ${n})`).toEqual({ ok: true });
	}
});
