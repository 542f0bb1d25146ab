import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";
import { FAKE_AI } from "./tests/support/fake-ai.ts";
import { outside } from "./tests/support/outside.ts";

/**
 * `core`: plain Node, milliseconds. `workers`: the real Worker in local workerd with real D1, Durable Objects and WASM;
 * all traffic to the outside ends in tests/support/outside.ts. `process`: whole processes, `npm start` among them.
 */
export default defineConfig({
	test: {
		projects: [
			{
				test: {
					name: "core",
					include: ["core/**/*.test.ts", "tests/architecture/**/*.test.ts", "tests/simulation/**/*.test.ts"],
					environment: "node",
				},
			},
			{
				// The agent framework's packages name source maps that they do not hold: a line of warning for each of its files.
				logLevel: "error",
				plugins: [
					cloudflareTest(async () => ({
						remoteBindings: false,
						wrangler: { configPath: "./wrangler.test.toml" },
						miniflare: {
							bindings: {
								TEST_MIGRATIONS: await readD1Migrations("migrations"),
								TEST_DATASET_MIGRATIONS: await readD1Migrations("ops/demo-dataset"),
								BELAY_MASTER_SECRET: "dGVzdC1tYXN0ZXItc2VjcmV0LXRlc3QtbWFzdGVyLTE=",
								BELAY_PUBLIC_URL: "https://belay.test",
								BELAY_PLANNER_BASE_URL: "https://planner.test",
								BELAY_PLANNER_API_KEY: "test-planner-key",
								BELAY_PLANNER_PRICES: JSON.stringify({
									priced: { prompt: 100, completion: 200 },
									"priced-low": { prompt: 0.07, completion: 0.1 },
									given: { prompt: 0, completion: 0 },
								}),
							},
							outboundService: outside,
							serviceBindings: { AI: { name: "fake-ai", entrypoint: "FakeAi" } },
							workers: [
								{
									name: "fake-ai",
									modules: true,
									script: FAKE_AI,
									compatibilityDate: "2026-11-02",
									outboundService: outside,
								},
							],
						} as never,
					})),
				],
				test: {
					name: "workers",
					include: ["tests/**/*.test.ts"],
					exclude: ["tests/architecture/**", "tests/process/**", "tests/simulation/**"],
					// The first import of the openai package takes seconds in the pool, on a busy machine more.
					testTimeout: 30_000,
					hookTimeout: 60_000,
					isolate: false,
					maxWorkers: 1,
					setupFiles: ["./tests/support/setup.ts"],
				},
			},
			{
				test: {
					name: "process",
					include: ["tests/process/**/*.test.ts"],
					environment: "node",
					testTimeout: 180_000,
					hookTimeout: 180_000,
					fileParallelism: false,
				},
			},
		],
	},
});
