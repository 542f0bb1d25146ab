/** Invokes tools of kind `builtin`: what Belay itself can answer without asking anybody. Only the choke point calls it. */
import { failed, type InvokeOutcome } from "#core/outcome.ts";
import type { Clock, Invocation, ToolInvoker } from "#core/ports.ts";

export class BuiltinInvoker implements ToolInvoker {
	readonly #clock: Clock;

	constructor(clock: Clock) {
		this.#clock = clock;
	}

	async invoke(invocation: Invocation): Promise<InvokeOutcome> {
		const { implementation } = invocation.descriptor;
		if (implementation.kind !== "builtin") return failed("internal", "not a tool of kind `builtin`");
		const done = { kind: "success", facts: [], notes: [] } as const;
		switch (implementation.name) {
			case "echo":
				return { ...done, result: invocation.arguments };
			case "clock":
				return { ...done, result: { now: new Date(this.#clock()).toISOString(), zone: "UTC" } };
			default:
				return failed("not_configured", `there is no builtin \`${implementation.name}\``);
		}
	}
}
