/**
 * The state directory of a local Belay: master secret, credentials, databases. Everything in it is for its owner's eyes.
 * Called by start and demo; the Worker never sees a path.
 */
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { dirname, join, resolve } from "node:path";
import { ROOT } from "./bundle.ts";

/** `dev-credentials.json`: how anything else on this machine finds and enters the running instance. */
export type Credentials = {
	readonly base_url: string;
	readonly tenant_id: string;
	readonly operator_key: string;
	readonly reader_key: string;
	readonly limited_key: string;
	readonly approver_key: string;
	readonly agent_key: string;
};

/** `BELAY_STATE_DIR`, or `.belay` in the checkout. */
export function stateDir(): string {
	const named = process.env.BELAY_STATE_DIR;
	return named === undefined || named === "" ? join(ROOT, ".belay") : resolve(named);
}

export const credentialsPath = (dir: string): string => join(dir, "dev-credentials.json");

/** Folder by folder: Node's recursive `mkdir` never ends below `/proc`, where a folder can neither be found nor made. */
function makeFolder(dir: string): void {
	if (existsSync(dir)) return;
	if (dirname(dir) !== dir) makeFolder(dirname(dir));
	try {
		mkdirSync(dir, { mode: 0o700 });
	} catch (fault) {
		if ((fault as NodeJS.ErrnoException).code !== "EEXIST") throw fault;
	}
}

/**
 * Makes the directory and answers its master secret, which is made once: runs and links outlive a restart only with it.
 * Throws, with the variable's name, where that cannot be.
 */
export function openState(dir: string): { master_secret: string } {
	const path = join(dir, "master-secret");
	try {
		makeFolder(dir);
		try {
			writeFileSync(path, randomBytes(32).toString("base64"), { mode: 0o600, flag: "wx" });
		} catch (fault) {
			if ((fault as NodeJS.ErrnoException).code !== "EEXIST") throw fault;
		}
		return { master_secret: readFileSync(path, "utf8").trim() };
	} catch (fault) {
		throw new Error(
			`BELAY_STATE_DIR \`${dir}\` cannot be used: ${(fault as Error).message}; name a directory that can be written to`,
			{ cause: fault },
		);
	}
}

/** Writes in one step, so that a reader never meets half a file. */
export function writePrivate(path: string, text: string): void {
	const making = `${path}.${process.pid}`;
	writeFileSync(making, text, { mode: 0o600 });
	chmodSync(making, 0o600);
	renameSync(making, path);
}

/** The credentials of the instance that ran last in this directory, or undefined. */
export function readCredentials(dir: string): Credentials | undefined {
	try {
		return (JSON.parse(readFileSync(credentialsPath(dir), "utf8")) as Credentials | null) ?? undefined;
	} catch {
		return undefined;
	}
}

const listens = (port: number): Promise<boolean> =>
	new Promise((done) => {
		const socket = connect({ host: "127.0.0.1", port });
		socket.once("connect", () => {
			socket.destroy();
			done(true);
		});
		socket.once("error", () => done(false));
	});

const isAlive = (pid: number): boolean => {
	try {
		process.kill(pid, 0);
		return true;
	} catch (fault) {
		return (fault as NodeJS.ErrnoException).code === "EPERM";
	}
};

/**
 * Claims the directory for this process: two Workers on one set of databases would each believe to be the only one.
 * Throws when another instance holds it. A holder that was killed leaves a stale claim, told by its silent port.
 */
export async function claimState(dir: string, port: number): Promise<void> {
	const path = join(dir, "instance.json");
	try {
		const held = JSON.parse(readFileSync(path, "utf8")) as { pid: number; port: number };
		if (held.pid !== process.pid && isAlive(held.pid) && (await listens(held.port))) {
			throw new Error(
				`\`${dir}\` is in use by process ${held.pid} on port ${held.port}; stop it, or set BELAY_STATE_DIR`,
			);
		}
	} catch (fault) {
		if (fault instanceof Error && fault.message.includes("is in use")) throw fault;
	}
	writePrivate(path, JSON.stringify({ pid: process.pid, port }));
	process.once("exit", () => rmSync(path, { force: true }));
}

/** The port to serve on: `wanted`, or a free one for 0. Throws when it is taken. */
export async function freePort(wanted: number): Promise<number> {
	const server = createServer();
	return await new Promise((done, fail) => {
		server.once("error", (fault: NodeJS.ErrnoException) => {
			const busy = fault.code === "EADDRINUSE";
			fail(busy ? new Error(`port ${wanted} is in use; stop what holds it, or choose another with PORT`) : fault);
		});
		server.listen({ port: wanted, host: "127.0.0.1", exclusive: true }, () => {
			const { port } = server.address() as { port: number };
			server.close(() => done(port));
		});
	});
}
