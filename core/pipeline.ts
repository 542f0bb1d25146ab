/**
 * The nine stages that every tool call walks, in order. The folders of `core/` carry these names and an architecture
 * test holds them together: a stage may import the ground files of `core/` and the stages before it, nothing else.
 */
export const PIPELINE = [
	"registry",
	"surface",
	"availability",
	"exposure",
	"normalize",
	"policy",
	"approval",
	"invoke",
	"evidence",
] as const;

export type Stage = (typeof PIPELINE)[number];
