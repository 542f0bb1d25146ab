/** The invoker of every tool kind, made once per run object from its bindings. */
import { BuiltinInvoker } from "#adapters/builtin/builtin-invoker.ts";
import { D1Channels } from "#adapters/d1/d1-channels.ts";
import { D1Secrets } from "#adapters/d1/d1-secrets.ts";
import { FullTextInvoker } from "#adapters/fulltext/fulltext-invoker.ts";
import { addressRules } from "#adapters/http/address-rules.ts";
import { HttpInvoker } from "#adapters/http/http-invoker.ts";
import { resolverOf } from "#adapters/http/resolver.ts";
import { NotifyInvoker } from "#adapters/notify/notify-invoker.ts";
import { D1SecretVault } from "#adapters/secrets/d1-secret-vault.ts";
import { readMasters } from "#adapters/secrets/derive.ts";
import { SecretSealer } from "#adapters/secrets/secret-sealer.ts";
import { Datasets } from "#adapters/sql/datasets.ts";
import { SqlInvoker } from "#adapters/sql/sql-invoker.ts";
import { CodeInvoker } from "#adapters/wasm/code-invoker.ts";
import type { ExecutorApi } from "#adapters/wasm/executor-api.ts";
import { WasmInvoker } from "#adapters/wasm/wasm-invoker.ts";
import type { Invokers } from "./choke-point.ts";

export function makeInvokers(env: Env, executor: ExecutorApi): Invokers {
	const masters = readMasters(env.BELAY_MASTER_SECRET);
	const rules = addressRules({ public_url: env.BELAY_PUBLIC_URL, dev_upstreams: env.BELAY_DEV_UPSTREAMS });
	const vault = new D1SecretVault(new D1Secrets(env.DB), new SecretSealer(masters));
	const datasets = new Datasets(env.BELAY_DATASETS, env as unknown as Record<string, unknown>);
	const clock = Date.now;
	const send = (request: Request): Promise<Response> => fetch(request);
	const resolve = resolverOf(env.BELAY_DNS_URL, send);
	return {
		builtin: new BuiltinInvoker(clock),
		http: new HttpInvoker({ fetch: send, vault, rules, clock, resolve }),
		sql: new SqlInvoker((tenant_id, name) => datasets.byName(tenant_id, name)),
		retrieval: new FullTextInvoker((tenant_id, index) => datasets.byIndex(tenant_id, index)),
		wasm: new WasmInvoker(executor),
		code: new CodeInvoker(executor),
		notify: new NotifyInvoker({
			channels: new D1Channels(env.DB),
			sealer: new SecretSealer(masters, "channels"),
			fetch: send,
			rules,
			clock,
			resolve,
			mail: env.EMAIL,
			from: env.BELAY_MAIL_FROM === "" ? undefined : env.BELAY_MAIL_FROM,
		}),
	};
}
