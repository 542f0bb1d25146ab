/**
 * Ties a child's life to ours, `kill -9` included: a shell in a group of its own waits for the end of a pipe that only we
 * hold, and then kills the child. Without it workerd outlives its parent, keeps the port and goes on running tools.
 * POSIX only; elsewhere a child is killed on an orderly end alone.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";

/** Puts a running child on the leash; its own end takes it off, so that a number used again is never killed. */
function leash(child: ChildProcess): void {
	if (process.platform === "win32" || child.pid === undefined) return;
	const shell = spawn(
		"/bin/sh",
		["-c", 'while read -r line; do :; done; kill -9 "$1" 2>/dev/null', "leash", String(child.pid)],
		{
			detached: true,
			stdio: ["pipe", "ignore", "ignore"],
		},
	);
	shell.on("error", () => undefined);
	child.once("exit", () => shell.kill("SIGKILL"));
	shell.unref();
	(shell.stdin as unknown as { unref(): void } | null)?.unref();
}

/** Runs `start` and puts every process that it spawns on the leash, later ones included (a crashed workerd is replaced). */
export async function leashed<T>(
	start: () => Promise<T>,
	isOurs: (child: ChildProcess) => boolean,
): Promise<{ value: T; stop: () => void }> {
	const seen = (message: unknown): void => {
		const { process: child } = message as { process: ChildProcess };
		child.once("spawn", () => {
			if (isOurs(child)) leash(child);
		});
	};
	subscribe("child_process", seen);
	const stop = (): void => void unsubscribe("child_process", seen);
	try {
		return { value: await start(), stop };
	} catch (fault) {
		stop();
		throw fault;
	}
}
