/** `npm run demo`: on a running instance and on one of its own, ends well and shows figures that were computed. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callTool, newRun } from "./calls.ts";
import { endAll, Instance, npm, stateFolder } from "./instance.ts";

let instance: Instance;
beforeAll(async () => {
	instance = await Instance.start(stateFolder());
});
afterAll(endAll);

type Row = { readonly product: string; readonly units: number };

describe("npm run demo", () => {
	it("plays the worked case on the running instance, with the figures of its database", async () => {
		const run = await newRun(instance, ["sales_query"]);
		const turn = await callTool(instance, run.run_id, "q", "sales_query", {
			products: ["A", "B"],
			from_quarter: "2026-Q3",
		});
		const { rows } = (turn.run.calls[0]?.result ?? { rows: [] }) as { rows: Row[] };
		const units = (product: string): number => rows.find((row) => row.product === product)?.units ?? Number.NaN;
		expect(units("A") - units("B")).toBeGreaterThan(0);

		const demo = npm("demo", { BELAY_STATE_DIR: instance.folder });
		expect(await demo.ended, demo.output()).toBe(0);
		const shown = demo.output();
		expect(shown).toContain(instance.credentials.base_url);
		expect(shown).toContain("scripted");
		expect(shown).toContain("approval needed");
		const answer = shown.slice(shown.indexOf("\nanswer"));
		for (const figure of [units("A"), units("B"), units("A") - units("B")]) expect(answer).toContain(String(figure));
		expect(answer).toContain("intact");
		expect(shown).not.toContain("{{");
		// The person in charge has an approval, so the development instance printed where to decide it.
		expect(instance.process.output()).toMatch(/decide at http:\/\/127\.0\.0\.1:\d+\/a\/\S+/);
	});

	it("brings an instance of its own when none is running, and takes it away again", async () => {
		const demo = npm("demo", { BELAY_STATE_DIR: stateFolder() });
		expect(await demo.ended, demo.output()).toBe(0);
		expect(demo.output()).toContain("starting one for this demo");
		const base = /^instance\s+(\S+)/m.exec(demo.output())?.[1] ?? "";
		await expect(async () => fetch(`${base}/healthz`)).rejects.toThrow();
	});
});
