/** Bindings that `wrangler types` cannot know of: an optional secret, and what only tests have. */
interface __BaseEnv_Env {
	/** The managed planner's key; without it planner kind `openai` answers 503 `planner_unavailable`. */
	BELAY_PLANNER_API_KEY?: string;
	TEST_MIGRATIONS: import("cloudflare:test").D1Migration[];
	TEST_DATASET_MIGRATIONS: import("cloudflare:test").D1Migration[];
}
