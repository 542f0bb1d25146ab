/**
 * Whole instances for process tests: `npm start` in a process group of its own, with a state directory and a port of its
 * own, and the API as a client uses it. Everything started here is killed by `endAll`, which each file calls at its end.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../..");
const READY_WAIT_MS = 120_000;
const running = new Set<ChildProcess>();
const folders: string[] = [];
const servers: Server[] = [];

export type Credentials = Record<
	"base_url" | "tenant_id" | "operator_key" | "reader_key" | "limited_key" | "approver_key" | "agent_key",
	string
>;
export type Process = {
	readonly child: ChildProcess;
	readonly output: () => string;
	readonly ended: Promise<number | null>;
};

export function stateFolder(): string {
	const folder = mkdtempSync(join(tmpdir(), "belay-process-"));
	folders.push(folder);
	return folder;
}

/** A script of package.json as a person runs it. */
export function npm(script: string, env: Record<string, string>): Process {
	const { BELAY_PLANNER_API_KEY: _, ...own } = process.env;
	const child = spawn("npm", ["run", "--silent", script], {
		cwd: ROOT,
		detached: true,
		env: { ...own, ...env },
		stdio: ["ignore", "pipe", "pipe"],
	});
	running.add(child);
	let text = "";
	for (const stream of [child.stdout, child.stderr])
		stream?.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
	const ended = new Promise<number | null>((done) => {
		child.once("close", (code) => {
			running.delete(child);
			done(code);
		});
	});
	return { child, output: () => text, ended };
}

/** Asks again and again, never sleeping longer than it must; fails with what it saw last. */
export async function until<T>(
	what: string,
	wait_ms: number,
	probe: () => Promise<T | undefined> | T | undefined,
): Promise<T> {
	const end = Date.now() + wait_ms;
	for (;;) {
		const found = await probe();
		if (found !== undefined) return found;
		if (Date.now() > end) throw new Error(`not within ${wait_ms} ms: ${what}`);
		await new Promise((done) => setTimeout(done, 25));
	}
}

export const isListening = (port: number): Promise<boolean> =>
	new Promise((done) => {
		const socket = connect({ host: "127.0.0.1", port });
		socket.once("connect", () => done(true)).once("error", () => done(false));
		socket.once("connect", () => socket.destroy());
	});

export class Instance {
	readonly process: Process;
	readonly folder: string;
	readonly credentials: Credentials;

	private constructor(process: Process, folder: string, credentials: Credentials) {
		this.process = process;
		this.folder = folder;
		this.credentials = credentials;
	}

	/** Starts and waits for the ready line; what the credentials file said at that moment is what tests use. */
	static async start(folder: string, env: Record<string, string> = {}): Promise<Instance> {
		const started = npm("start", { BELAY_STATE_DIR: folder, PORT: "0", ...env });
		let over: { readonly code: number | null } | null = null;
		void started.ended.then((code) => (over = { code }));
		await until("ready line", READY_WAIT_MS, () => {
			if (/^ready on http/m.test(started.output())) return true;
			if (over !== null)
				throw new Error(`it ended (${JSON.stringify(over)}) instead of starting:\n${started.output()}`);
			return undefined;
		}).catch((fault: unknown) => {
			throw new Error(`it did not start; it said:\n${started.output()}`, { cause: fault });
		});
		const credentials = JSON.parse(readFileSync(join(folder, "dev-credentials.json"), "utf8")) as Credentials;
		return new Instance(started, folder, credentials);
	}

	get port(): number {
		return Number(new URL(this.credentials.base_url).port);
	}

	/** What a power cut does, as near as a process can: the whole group at once, no handler runs. */
	async kill(): Promise<void> {
		process.kill(-(this.process.child.pid ?? 0), "SIGKILL");
		await this.process.ended;
		await until("port free after kill", 15_000, async () => ((await isListening(this.port)) ? undefined : true));
	}

	async ask<T = Record<string, unknown>>(
		who: keyof Credentials,
		method: string,
		path: string,
		body?: unknown,
		headers: Record<string, string> = {},
	): Promise<{ status: number; body: T }> {
		const answer = await fetch(`${this.credentials.base_url}${path}`, {
			method,
			headers: {
				authorization: `Bearer ${this.credentials[who]}`,
				...(body === undefined ? {} : { "content-type": "application/json" }),
				...headers,
			},
			body: body === undefined ? null : JSON.stringify(body),
			signal: AbortSignal.timeout(90_000),
		});
		const text = await answer.text();
		return { status: answer.status, body: (text === "" ? null : JSON.parse(text)) as T };
	}

	/** As `ask`, but anything other than `status` fails the test with the answer. */
	async expect<T = Record<string, unknown>>(
		status: number,
		who: keyof Credentials,
		method: string,
		path: string,
		body?: unknown,
		headers: Record<string, string> = {},
	): Promise<T> {
		const answer = await this.ask<T>(who, method, path, body, headers);
		if (answer.status !== status)
			throw new Error(`${method} ${path}: ${answer.status} instead of ${status}: ${JSON.stringify(answer.body)}`);
		return answer.body;
	}
}

export type Upstream = {
	readonly address: string;
	readonly received: { readonly url: string; readonly headers: IncomingMessage["headers"]; readonly body: string }[];
};

/** A server on loopback that records what reaches it and answers 200, after `delay_ms` if that is given. */
export async function recordingUpstream(delay_ms = 0): Promise<Upstream> {
	const received: Upstream["received"] = [];
	const server = createServer((request, response) => {
		let body = "";
		request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
		request.on("end", () => {
			received.push({ url: request.url ?? "", headers: request.headers, body });
			setTimeout(
				() => response.setHeader("content-type", "application/json").end(JSON.stringify({ receipt: received.length })),
				delay_ms,
			);
		});
	});
	servers.push(server);
	await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
	return { address: `127.0.0.1:${(server.address() as { port: number }).port}`, received };
}

export async function endAll(): Promise<void> {
	for (const child of running) {
		try {
			process.kill(-(child.pid ?? 0), "SIGKILL");
		} catch {
			// it is gone already
		}
	}
	for (const server of servers.splice(0)) {
		server.closeAllConnections();
		server.close();
	}
	for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
