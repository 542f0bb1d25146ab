/** Every test file begins with an empty world and the present schema. */
import { applyD1Migrations, reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll } from "vitest";

beforeAll(async () => {
	await reset();
	await applyD1Migrations(env.DB, env.TEST_MIGRATIONS);
	await applyD1Migrations(env.DATASET_DEMO, env.TEST_DATASET_MIGRATIONS);
});
