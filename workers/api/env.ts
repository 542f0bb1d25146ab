/** The bindings of this Worker (wrangler.toml) and what its middleware leaves for the routes. */
import type { Caller } from "#core/principal.ts";

/** The bindings, as `wrangler types` writes them. */
export type Env = Cloudflare.Env;

export type AppEnv = {
	readonly Bindings: Env;
	readonly Variables: {
		trace_id: string;
		/** Set on every route but the public ones. */
		caller: Caller;
		/** The run that a chat request goes on with, once its caller may read it: its errors name it too. */
		run_id?: string;
		/** Set by a chat request that may be sent again whatever became of it: what it says is taken once. */
		repeatable?: boolean;
	};
};
