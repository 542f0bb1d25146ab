/** Whether doing a call twice is harmless. Decides retries, recovery after a crash, and what a lost answer means (I2, I9). */
import type { ToolDescriptor } from "../registry/descriptor.ts";

/**
 * `yes`: a read, or a write that is naturally idempotent. `keyed`: a write that carries an idempotency key upstream, so
 * a repeat with the same key is one operation. `no`: every other write; its unknown outcome is never repeated.
 */
export function repeatable(descriptor: ToolDescriptor): "yes" | "keyed" | "no" {
	if (descriptor.effect === "read" || descriptor.idempotency.mode === "natural") return "yes";
	return descriptor.idempotency.mode === "key" ? "keyed" : "no";
}
