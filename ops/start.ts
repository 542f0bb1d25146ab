/**
 * `npm start`: a development instance on this machine, offline, without an account. Bundles the Worker with the development
 * exemptions, serves it on 127.0.0.1, applies migrations, seeds the development tenant, whose keys outlive a restart, writes
 * `dev-credentials.json` and then says `ready on <url>`. Reads PORT, BELAY_STATE_DIR, BELAY_DEV_UPSTREAMS and
 * BELAY_PLANNER_*. Ends on SIGINT and SIGTERM; after a `kill -9` nothing of it is left running.
 */
import { join } from "node:path";
import { bundleWorker } from "./local/bundle.ts";
import { seedWithKeys } from "./local/development-keys.ts";
import { whenNpmIsGone } from "./local/npm-parent.ts";
import { migrate, type Served, serve } from "./local/serve.ts";
import { settingFault } from "./local/settings.ts";
import {
	type Credentials,
	claimState,
	credentialsPath,
	freePort,
	openState,
	readCredentials,
	stateDir,
	writePrivate,
} from "./local/state.ts";
import { DEVELOPMENT_PRINCIPALS } from "./seed/seed.ts";

/** Environment variables that the Worker gets as bindings when they are set. */
const PASSED_ON = [
	"BELAY_PLANNER_BASE_URL",
	"BELAY_PLANNER_API_KEY",
	"BELAY_PLANNER_MODEL",
	"BELAY_PLANNER_PRICES",
	"BELAY_PLANNER_CONTEXT_TOKENS",
	"BELAY_PLANNER_STRICT",
	"BELAY_MAIL_FROM",
	"BELAY_DNS_URL",
	"BELAY_DEV_UPSTREAMS",
	"BELAY_PLATFORM_TENANT",
] as const;
const PORT_DEFAULT = 8787;
/** How long the Worker may take to answer its first health check. */
const HEALTH_WAIT_MS = 20_000;

function wantedPort(): number {
	const text = process.env.PORT ?? "";
	const port = text === "" ? PORT_DEFAULT : Number(text);
	if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error(`PORT \`${text}\` is not a port`);
	return port;
}

/** The Worker's output, with the one line that is meant for a person set apart: the link of a new approval. */
function showLog(level: string, message: string): void {
	if (message.startsWith('{"belay_dev":"approval_link"')) {
		const { summary, url } = JSON.parse(message) as { summary: string; url: string };
		console.log(`\napproval needed: ${summary}\n    decide at ${url}\n`);
	} else if (level === "error" || level === "warn") console.error(message);
	else console.log(message);
}

async function untilHealthy(base_url: string): Promise<void> {
	const until = Date.now() + HEALTH_WAIT_MS;
	for (;;) {
		const answer = await fetch(`${base_url}/healthz`, { signal: AbortSignal.timeout(5_000) }).catch((fault: unknown) =>
			String(fault),
		);
		if (typeof answer !== "string" && answer.ok) return;
		if (Date.now() > until)
			throw new Error(`the Worker does not answer /healthz: ${typeof answer === "string" ? answer : answer.status}`);
		await new Promise((done) => setTimeout(done, 50));
	}
}

function announce(dir: string, credentials: Credentials): void {
	const { base_url, tenant_id } = credentials;
	console.log(`Belay, development instance (state in ${dir})
  api       ${base_url}/v1   documentation at ${base_url}/docs
  tenant    ${tenant_id}
  operator  ${credentials.operator_key}
  approver  ${credentials.approver_key}
  reader    ${credentials.reader_key}
  agent     ${credentials.agent_key}
  limited   ${credentials.limited_key}
  also in   ${credentialsPath(dir)}`);
	const upstreams = process.env.BELAY_DEV_UPSTREAMS ?? "";
	if (upstreams !== "") console.log(`  private upstreams that tools may reach: ${upstreams}`);
	console.log(`ready on ${base_url}`);
}

async function start(): Promise<Served> {
	const fault = settingFault(process.env);
	if (fault !== null) throw new Error(fault);
	const dir = stateDir();
	const port = await freePort(wantedPort());
	const { master_secret } = openState(dir);
	await claimState(dir, port);
	const base_url = `http://127.0.0.1:${port}`;
	const vars: Record<string, string> = {
		BELAY_MASTER_SECRET: master_secret,
		BELAY_PUBLIC_URL: base_url,
		BELAY_DEV_APPROVER: DEVELOPMENT_PRINCIPALS.approver.principal_id,
	};
	for (const name of PASSED_ON) if ((process.env[name] ?? "") !== "") vars[name] = process.env[name] ?? "";
	const bundle = await bundleWorker(true);
	const served = await serve({ bundle, port, state: join(dir, "data"), vars, onLog: showLog });
	try {
		for (const [binding, migrations] of Object.entries(bundle.plan.migrations))
			await migrate(await served.database(binding), migrations);
		const earlier = readCredentials(dir);
		const { tenant_id, keys } = await seedWithKeys(await served.database("DB"), {
			operator: earlier?.operator_key,
			approver: earlier?.approver_key,
			reader: earlier?.reader_key,
			limited: earlier?.limited_key,
			agent: earlier?.agent_key,
		});
		await untilHealthy(base_url);
		const credentials: Credentials = {
			base_url,
			tenant_id,
			operator_key: keys.operator,
			reader_key: keys.reader,
			limited_key: keys.limited,
			approver_key: keys.approver,
			agent_key: keys.agent,
		};
		writePrivate(credentialsPath(dir), `${JSON.stringify(credentials, null, "\t")}\n`);
		announce(dir, credentials);
		return served;
	} catch (fault) {
		await served.stop();
		throw fault;
	}
}

/** While it starts there is nothing to end in order: the leash takes workerd down. A second signal does not wait. */
let served: Served | undefined;
let ending = false;
function end(): void {
	if (served === undefined || ending) process.exit(ending ? 1 : 0);
	ending = true;
	const exit = (): void => process.exit(0);
	served.stop().then(exit, exit);
}
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, end);
whenNpmIsGone(end);

try {
	served = await start();
} catch (fault) {
	console.error(`belay did not start: ${fault instanceof Error ? fault.message : String(fault)}`);
	process.exit(1);
}
