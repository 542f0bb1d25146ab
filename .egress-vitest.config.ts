import { defineConfig } from "vitest/config";
export default defineConfig({ test: { include: ["tests/http/**/*.test.ts","tests/secrets/**/*.test.ts"], environment: "node", exclude: ["tests/http/ledger.test.ts"] } });
