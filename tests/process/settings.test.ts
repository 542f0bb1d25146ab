/** What `npm start` is told by its environment: a setting that cannot be meant is refused by name before anything runs. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { settingFault } from "#ops/local/settings.ts";
import { openState } from "#ops/local/state.ts";
import { endAll, npm, stateFolder } from "./instance.ts";

afterAll(endAll);

it("names the variable and the form it takes", () => {
	const refused: [string, string, string][] = [
		["BELAY_DEV_UPSTREAMS", "foo", "host:port"],
		["BELAY_DEV_UPSTREAMS", "127.0.0.1:9000,http://10.0.0.1:80", "host:port"],
		["BELAY_DEV_UPSTREAMS", "127.0.0.1:0", "host:port"],
		["BELAY_DEV_UPSTREAMS", "127.0.0.1:65536", "host:port"],
		["BELAY_PLANNER_PRICES", "{x", "JSON"],
		["BELAY_PLANNER_PRICES", '{"m":{"prompt":1}}', '"completion"'],
		["BELAY_PLANNER_STRICT", "foo", "`each` or `all`"],
		["BELAY_PLANNER_CONTEXT_TOKENS", "many", "4096"],
	];
	for (const [name, value, form] of refused) {
		const fault = settingFault({ [name]: value });
		expect(fault, value).toContain(`${name} \`${value}\``);
		expect(fault, value).toContain(form);
	}
	const taken = {
		BELAY_DEV_UPSTREAMS: "127.0.0.1:9000, localhost:80,[::1]:65535,",
		BELAY_PLANNER_PRICES: '{"m":{"prompt":0.1,"completion":2}}',
		BELAY_PLANNER_STRICT: "each",
		BELAY_PLANNER_CONTEXT_TOKENS: "65536",
	};
	expect(settingFault(taken)).toBeNull();
	expect(settingFault({})).toBeNull();
	expect(settingFault(Object.fromEntries(Object.keys(taken).map((name) => [name, ""])))).toBeNull();
});

it("ends with 1 where no state can be kept, instead of trying for ever", async () => {
	const started = npm("start", { BELAY_STATE_DIR: "/proc/x/y", PORT: "0", BELAY_PLANNER_STRICT: "" });
	expect(await started.ended).toBe(1);
	expect(started.output()).toContain("belay did not start: BELAY_STATE_DIR `/proc/x/y` cannot be used");
	const file = join(stateFolder(), "file");
	writeFileSync(file, "");
	for (const dir of [file, join(file, "below")])
		expect(() => openState(dir)).toThrow(`BELAY_STATE_DIR \`${dir}\` cannot be used`);
	expect(openState(join(stateFolder(), "a", "b")).master_secret).toHaveLength(44);
});

it("ends with 1 before it says ready when a setting is wrong", async () => {
	const started = npm("start", { BELAY_STATE_DIR: stateFolder(), PORT: "0", BELAY_PLANNER_STRICT: "foo" });
	expect(await started.ended).toBe(1);
	expect(started.output()).toContain("belay did not start: BELAY_PLANNER_STRICT `foo`");
	expect(started.output()).not.toContain("ready on");
});
