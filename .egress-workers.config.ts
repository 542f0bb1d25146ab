import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";
import { outside } from "./tests/support/outside.ts";
export default defineConfig({ plugins: [cloudflareTest(async () => ({ remoteBindings: false, wrangler: { configPath: "/tmp/egress/wrangler.toml" }, miniflare: { outboundService: outside } as never }))],
 test: { include: ["tests/http/**/*.test.ts","tests/secrets/**/*.test.ts"], isolate: false, maxWorkers: 1 } });
