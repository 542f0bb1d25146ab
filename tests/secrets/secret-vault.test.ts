import { expect, test } from "vitest";
import { checkAllowedUse } from "#adapters/secrets/allowed-use.ts";
import { D1SecretVault, type SecretRow } from "#adapters/secrets/d1-secret-vault.ts";
import { readMasters } from "#adapters/secrets/derive.ts";
import { SecretSealer } from "#adapters/secrets/secret-sealer.ts";
import { allowsHost } from "#core/normalize/host-pattern.ts";

const OLD = Buffer.alloc(32, 3).toString("base64");
const NEW = Buffer.alloc(32, 4).toString("base64");
const sealer = new SecretSealer(readMasters(NEW));
const place = { tenant_id: "ten_a", name: "ledger-key", version: 1 };
const PLAIN = "s3cr3t-✓-value";

test("what was sealed opens at its place, and the text shows nothing of it", async () => {
	const sealed = await sealer.seal(place, PLAIN);
	expect(sealed).toMatch(/^v1\.[0-9a-f]{8}\.[A-Za-z0-9_-]{16}\.[A-Za-z0-9_-]+$/);
	expect(sealed).not.toContain("s3cr3t");
	expect(await sealer.seal(place, PLAIN)).not.toBe(sealed);
	expect(await sealer.open(place, sealed)).toBe(PLAIN);
});

test("a row moved to another tenant, name or version does not open", async () => {
	const sealed = await sealer.seal(place, PLAIN);
	expect(await sealer.open({ ...place, tenant_id: "ten_b" }, sealed)).toBeUndefined();
	expect(await sealer.open({ ...place, name: "other" }, sealed)).toBeUndefined();
	expect(await sealer.open({ ...place, version: 2 }, sealed)).toBeUndefined();
});

test("parts that run into each other do not open for each other", async () => {
	const sealed = await sealer.seal({ tenant_id: "ten", name: 'a","b', version: 1 }, PLAIN);
	expect(await sealer.open({ tenant_id: 'ten","a', name: "b", version: 1 }, sealed)).toBeUndefined();
});

test("a changed byte anywhere, a cut or a foreign text does not open", async () => {
	const sealed = await sealer.seal(place, PLAIN);
	for (const at of [3, 12, 15, 30, sealed.length - 4]) {
		const changed = `${sealed.slice(0, at)}${sealed[at] === "A" ? "B" : "A"}${sealed.slice(at + 1)}`;
		expect(await sealer.open(place, changed), `position ${at}`).toBeUndefined();
	}
	for (const text of ["", "v1", sealed.slice(0, -6), sealed.replace("v1", "v2"), `${sealed}.x`, PLAIN]) {
		expect(await sealer.open(place, text)).toBeUndefined();
	}
});

test("a secret sealed for one purpose does not open for another", async () => {
	const sealed = await new SecretSealer(readMasters(NEW), "channels").seal(place, PLAIN);
	expect(await sealer.open(place, sealed)).toBeUndefined();
});

test("rotation: the retired master opens, the present one seals, a removed one opens nothing", async () => {
	const before = new SecretSealer(readMasters(OLD));
	const during = new SecretSealer(readMasters(`${NEW},${OLD}`));
	const sealed = await before.seal(place, PLAIN);
	expect(await during.open(place, sealed)).toBe(PLAIN);
	expect(during.isCurrent(sealed)).toBe(false);
	const again = await during.seal(place, PLAIN);
	expect(during.isCurrent(again)).toBe(true);
	expect(await sealer.open(place, again)).toBe(PLAIN);
	expect(await sealer.open(place, sealed)).toBeUndefined();
});

async function vaultWith(row: Partial<SecretRow>): Promise<D1SecretVault> {
	const ciphertext = await sealer.seal(place, PLAIN);
	const full: SecretRow = {
		ciphertext,
		version: 1,
		allowed_hosts: ["api.example.com"],
		allowed_tools: ["get_order"],
		...row,
	};
	return new D1SecretVault(
		{ get: async (tenant, name) => (tenant === "ten_a" && name === "ledger-key" ? full : undefined) },
		sealer,
	);
}

test("the vault opens for a named tool and a named host, and for nothing else", async () => {
	const vault = await vaultWith({});
	const use = { tool_id: "get_order", host: "api.example.com" };
	expect(await vault.open("ten_a", "ledger-key", use)).toEqual({ ok: true, value: PLAIN, version: 1 });
	for (const other of [
		{ ...use, tool_id: "get_order2" },
		{ ...use, host: "evil.test" },
		{ ...use, host: "api.example.com.evil.test" },
		{ ...use, host: "api.example.com:8443" },
		{ ...use, host: "evil-api.example.com" },
		{ ...use, host: null },
	]) {
		expect(await vault.open("ten_a", "ledger-key", other)).toEqual({ ok: false, reason: "not_allowed" });
	}
	expect(await vault.open("ten_b", "ledger-key", use)).toEqual({ ok: false, reason: "unknown_secret" });
	expect(await vault.open("ten_a", "other", use)).toEqual({ ok: false, reason: "unknown_secret" });
});

test("a row that names nothing allows nothing, and `*` in a row is not a host", async () => {
	const use = { tool_id: "get_order", host: "api.example.com" };
	for (const row of [
		{ allowed_hosts: [] },
		{ allowed_tools: [] },
		{ allowed_hosts: ["*"] },
		{ allowed_hosts: ["*.com"] },
		{ allowed_tools: ["*"] },
	]) {
		expect(await (await vaultWith(row)).open("ten_a", "ledger-key", use)).toEqual({ ok: false, reason: "not_allowed" });
	}
});

test("a row whose version was changed by hand opens as unknown", async () => {
	const vault = await vaultWith({ version: 2 });
	const found = await vault.open("ten_a", "ledger-key", { tool_id: "get_order", host: "api.example.com" });
	expect(found).toEqual({ ok: false, reason: "unknown_secret" });
});

test("host patterns: subdomains by wildcard, the port literal", () => {
	expect(allowsHost(["*.example.com"], "a.b.example.com")).toBe(true);
	expect(allowsHost(["*.example.com"], "example.com")).toBe(false);
	expect(allowsHost(["*.example.com"], "evilexample.com")).toBe(false);
	expect(allowsHost(["*.example.com"], "a.example.com:8443")).toBe(false);
	expect(allowsHost(["*.example.com:8443"], "a.example.com:8443")).toBe(true);
	expect(allowsHost(["127.0.0.1:4010"], "127.0.0.1:4010")).toBe(true);
});

test("lists are checked before they are stored", () => {
	expect(
		checkAllowedUse({ allowed_hosts: ["api.example.com", "*.example.org:8443"], allowed_tools: ["get_order"] }),
	).toEqual([]);
	const fields = (hosts: string[], tools: string[]) =>
		checkAllowedUse({ allowed_hosts: hosts, allowed_tools: tools }).map((one) => one.field);
	expect(fields([], [])).toEqual(["/allowed_hosts", "/allowed_tools"]);
	expect(
		fields(["*", "*.com", "https://api.example.com", "API.example.com", "a b", "api.example.com/"], ["*"]),
	).toEqual([
		"/allowed_hosts/0",
		"/allowed_hosts/1",
		"/allowed_hosts/2",
		"/allowed_hosts/3",
		"/allowed_hosts/4",
		"/allowed_hosts/5",
		"/allowed_tools/0",
	]);
});
