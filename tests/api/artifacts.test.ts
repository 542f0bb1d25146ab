/** Large results in R2: stored whole, read by whoever may read their run, by nobody else, and never altered unnoticed. */
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { R2Artifacts } from "#adapters/r2/r2-artifacts.ts";
import { type ArtifactResult, storeLargeResult } from "#adapters/r2/store-large-result.ts";
import type { Json } from "#core/json.ts";
import { RESULT_INLINE_MAX_BYTES, RESULT_MAX_BYTES } from "#core/limits.ts";
import { failed, type InvokeOutcome, type Success } from "#core/outcome.ts";
import type { ArtifactStore } from "#core/ports.ts";
import { call, pluck, seedTenant, sha256, type TestTenant, worker } from "../support/client.ts";

const random = (n: number): Uint8Array => crypto.getRandomValues(new Uint8Array(n));
const store = new R2Artifacts(env.ARTIFACTS, random);
const success = (result: Json): Success => ({ kind: "success", result, facts: ["HTTP 200"], notes: ["first"] });
const LARGE = { rows: Array.from({ length: 9_000 }, (_, n) => ({ n, text: "\u4e16\u{1F600} row" })) };

let tenant: TestTenant;
let other: TestTenant;
let run_id: string;
beforeAll(async () => {
	tenant = await seedTenant();
	other = await seedTenant();
	run_id = await newRun(tenant.agent);
});

async function newRun(key: string): Promise<string> {
	return (await call("POST", "/v1/runs", { goal: "g", planner: { kind: "external" } }, key)).body.run_id;
}
const place = (more: object = {}) => ({ tenant_id: tenant.tenant_id, run_id, tool_call_id: "call_1", ...more });
async function stored(result: Json = LARGE, where = place()): Promise<ArtifactResult> {
	const outcome = await storeLargeResult(success(result), where, store);
	if (outcome.kind !== "success") throw new Error(outcome.kind);
	return outcome.result as ArtifactResult;
}
const get = (path: string, key: string) => call("GET", path, undefined, key);

describe("a large result", () => {
	it("becomes a reference with a preview that fits inline, a fact and a note", async () => {
		const outcome = (await storeLargeResult(success(LARGE), place(), store)) as Success;
		const result = outcome.result as ArtifactResult;
		const text = JSON.stringify(LARGE);
		const bytes = new TextEncoder().encode(text).byteLength;
		expect(result).toMatchObject({ bytes, sha256: sha256(text), reference: `/v1/artifacts/${result.artifact_id}` });
		expect(result.artifact_id).toMatch(new RegExp(`^art_${run_id.slice(4)}_[0-9a-f]{32}$`));
		expect(pluck((result.preview as typeof LARGE).rows, "n").slice(0, 2)).toEqual([0, 1]);
		expect(JSON.stringify(result).length).toBeLessThan(RESULT_INLINE_MAX_BYTES);
		expect(outcome.facts).toEqual(["HTTP 200", expect.stringContaining(result.sha256)]);
		expect(outcome.notes).toEqual(["first", expect.stringContaining("artifact")]);
	});

	it("is downloaded whole, as an inert attachment", async () => {
		const { reference, artifact_id, sha256: digest, bytes } = await stored();
		const answer = await get(reference, tenant.agent);
		expect(answer.status).toBe(200);
		expect(answer.body).toEqual(LARGE);
		const said = (name: string) => answer.headers.get(name);
		expect(said("content-type")).toBe("application/json");
		expect(said("content-disposition")).toBe(`attachment; filename="${artifact_id}.json"`);
		expect(said("x-content-type-options")).toBe("nosniff");
		expect(said("etag")).toBe(`"${digest}"`);
		expect(said("content-length")).toBe(String(bytes));
		expect(said("cache-control")).toBe("no-store");
		expect(said("content-security-policy")).toContain("default-src 'none'");
	});

	it.each<[string, InvokeOutcome]>([
		["a small result", success({ a: 1 })],
		["a failure", failed("http_error", "no")],
		["a time-out", { kind: "timeout", phase: "body", effect: "none" }],
	])("%s comes back as it is", async (_what, outcome) => {
		expect(await storeLargeResult(outcome, place(), store)).toBe(outcome);
	});

	it("stays inline and says so when R2 is away; beyond the limit only a preview is left, of a success all the same", async () => {
		const away: ArtifactStore = { put: () => Promise.reject(new Error("R2 says: secret bucket")) };
		const kept = (await storeLargeResult(success(LARGE), place(), away)) as Success;
		expect(kept.result).toBe(LARGE);
		expect(kept.notes.join()).toContain("could not be stored");
		expect(JSON.stringify(kept.notes)).not.toContain("secret bucket");
		const huge = "x".repeat(RESULT_MAX_BYTES);
		const cut = (await storeLargeResult(success({ huge }), place(), away)) as Success;
		expect(cut.kind).toBe("success");
		expect(JSON.stringify(cut.result).length).toBeLessThan(RESULT_INLINE_MAX_BYTES);
		expect(cut.result).toMatchObject({ bytes: RESULT_MAX_BYTES + 11 });
		expect(cut.notes.join()).toContain("only a preview");
	});

	it("does not wait for an R2 that keeps silent", async () => {
		const silent = { put: () => new Promise(() => {}), get: () => new Promise(() => {}) } as unknown as R2Bucket;
		const impatient = new R2Artifacts(silent, random, 20);
		const kept = (await storeLargeResult(success(LARGE), place(), impatient)) as Success;
		expect(kept.result).toBe(LARGE);
		await expect(impatient.get(tenant.tenant_id, `art_${"0".repeat(32)}_${"0".repeat(32)}`)).rejects.toThrow("answer");
	});
});

describe("whose an artifact is", () => {
	it("whoever may read the run: its owner and people with runs:read", async () => {
		const { reference } = await stored();
		for (const key of [tenant.agent, tenant.operator, tenant.approver])
			expect((await get(reference, key)).status).toBe(200);
		// an agent reads its own runs only, whatever its roles
		expect((await get(reference, tenant.limited)).status).toBe(404);
		const own = await newRun(tenant.operator);
		const theirs = await stored(LARGE, place({ run_id: own }));
		expect((await get(theirs.reference, tenant.agent)).status).toBe(404);
	});

	it("another tenant gets the answer for a guessed id, even for the very id, and no key none at all", async () => {
		const { reference, artifact_id } = await stored();
		const guessed = await get(`/v1/artifacts/art_${run_id.slice(4)}_${"0".repeat(32)}`, tenant.operator);
		const foreign = await get(reference, other.operator);
		expect([guessed.status, foreign.status]).toEqual([404, 404]);
		expect({ ...foreign.body, trace_id: "" }).toEqual({ ...guessed.body, trace_id: "" });
		expect((await call("GET", reference)).status).toBe(401);
		expect(await store.get(other.tenant_id, artifact_id)).toBeUndefined();
	});

	it("an artifact that names another tenant is not served, wherever it lies", async () => {
		const { artifact_id } = await stored();
		const theirs = await newRun(other.operator);
		const planted = `art_${theirs.slice(4)}_${"1".repeat(32)}`;
		const { tenant_id } = tenant;
		await env.ARTIFACTS.put(`${other.tenant_id}/${theirs.slice(4)}/${planted}`, "x", {
			customMetadata: { tenant_id, run_id: theirs, tool_call_id: "c", sha256: sha256("x") },
		});
		expect((await get(`/v1/artifacts/${planted}`, other.operator)).status).toBe(404);
		// nor under the id of another run of the same tenant
		const moved = `art_${theirs.slice(4)}_${artifact_id.slice(-32)}`;
		await env.ARTIFACTS.put(`${other.tenant_id}/${theirs.slice(4)}/${moved}`, "x", {
			customMetadata: { tenant_id: other.tenant_id, run_id, tool_call_id: "c", sha256: sha256("x") },
		});
		expect((await get(`/v1/artifacts/${moved}`, other.operator)).status).toBe(404);
	});

	it.each(["call", "apr", "ev", "run"])("an id of another kind (%s) is no artifact's", async (kind) => {
		const { artifact_id } = await stored();
		expect((await get(`/v1/artifacts/${artifact_id.replace("art", kind)}`, tenant.operator)).status).toBe(404);
	});

	it.each(["..%2f..%2fx", "art_", `art_${"0".repeat(32)}_${"0".repeat(31)}%2f`, "art_x/../y"])(
		"%s reaches nothing",
		async (id) => {
			expect((await get(`/v1/artifacts/${id}`, tenant.operator)).status).toBe(404);
		},
	);
});

describe("what is read", () => {
	it("breaks off instead of ending when the bytes are not those that were stored", async () => {
		const { artifact_id, reference, sha256: digest, bytes } = await stored();
		const key = `${tenant.tenant_id}/${run_id.slice(4)}/${artifact_id}`;
		const customMetadata = { tenant_id: tenant.tenant_id, run_id, tool_call_id: "call_1", sha256: digest };
		await env.ARTIFACTS.put(key, "x".repeat(bytes), {
			customMetadata,
			httpMetadata: { contentType: "application/json" },
		});
		const request = new Request(`https://belay.test${reference}`, {
			headers: { authorization: `Bearer ${tenant.operator}` },
		});
		const response = await worker.fetch(request);
		await expect(response.arrayBuffer()).rejects.toThrow();
	});

	it("never runs as a page: a type that Belay does not store is served as bytes", async () => {
		const { artifact_id, reference } = await stored();
		const html = "<script>alert(1)</script>";
		const key = `${tenant.tenant_id}/${run_id.slice(4)}/${artifact_id}`;
		const customMetadata = { tenant_id: tenant.tenant_id, run_id, tool_call_id: "call_1", sha256: sha256(html) };
		await env.ARTIFACTS.put(key, html, { customMetadata, httpMetadata: { contentType: "text/html" } });
		const answer = await get(reference, tenant.operator);
		expect(answer.status).toBe(200);
		expect(answer.headers.get("content-type")).toBe("application/octet-stream");
		expect(answer.headers.get("content-disposition")).toMatch(/^attachment; filename="art_[0-9a-f_]+\.bin"$/);
	});
});
