/**
 * How one tool names another (R3): `tool_id`, which is whatever version is newest, or `tool_id@major`, which is the newest of
 * that major. Checked at registration; resolved wherever a tool is to stand in for another. Knows nothing of permissions.
 */
import { SEMVER, type ToolDescriptor, type ToolVersion } from "./descriptor.ts";

export type ToolReference = { readonly tool_id: string; readonly major: number | null };

/** What does not end in a major is an id as a whole: whether there is such a tool is seen where it is looked for. */
export function readReference(reference: string): ToolReference {
	const [, tool_id, major] = /^(.*)@(0|[1-9]\d{0,5})$/.exec(reference) ?? [];
	return tool_id === undefined ? { tool_id: reference, major: null } : { tool_id, major: Number(major) };
}

export function refersTo(reference: ToolReference, { tool_id, version }: ToolDescriptor): boolean {
	if (tool_id !== reference.tool_id) return false;
	return reference.major === null || reference.major === majorOf(version);
}

const majorOf = (version: string): number => Number(SEMVER.exec(version)?.[1]);

/** Tools online: the newest version of each, and of those that some tool pins to an older major the newest of that one. */
export type Online = {
	readonly tools: readonly ToolVersion[] | null;
	readonly pinned?: readonly ToolVersion[] | undefined;
};

export function resolveReference(reference: string, { tools, pinned }: Online): ToolVersion | undefined {
	const wanted = readReference(reference);
	const refers = ({ descriptor }: ToolVersion): boolean => refersTo(wanted, descriptor);
	return tools?.find(refers) ?? (wanted.major === null ? undefined : pinned?.find(refers));
}

/** References to majors of which none of these is a version: who holds the registry has to look for them. */
export function pinsBeyond(tools: readonly ToolVersion[]): ToolReference[] {
	const pins = new Map<string, ToolReference>();
	for (const { descriptor } of tools) {
		if (typeof descriptor.fallback !== "object") continue;
		const wanted = readReference(descriptor.fallback.tool_id);
		if (wanted.major === null || tools.some((one) => refersTo(wanted, one.descriptor))) continue;
		pins.set(descriptor.fallback.tool_id, wanted);
	}
	return [...pins.values()];
}
