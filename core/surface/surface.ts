/**
 * F2: is a tool on the public agent surface? Legacy and internal tools stay registered, are hidden from planners, and a
 * guess at their name is refused. Says nothing about whether it works or who may call it.
 */
import type { ToolDescriptor } from "../registry/descriptor.ts";

/** The answer to one of the five tool facts, with its reason in words. */
export type Fact = { readonly holds: boolean; readonly reason: string };

export function onSurface(descriptor: ToolDescriptor): Fact {
	switch (descriptor.visibility) {
		case "public":
			return { holds: true, reason: "on the public agent surface" };
		case "internal":
			return { holds: false, reason: "an internal primitive, hidden from planners" };
		case "legacy":
			return { holds: false, reason: "kept for older integrations, hidden from planners" };
	}
}
