/**
 * Chooses, where a value fits no branch of `anyOf` or `oneOf`, the branch it was most likely meant for, so that a planner
 * reads what to repair and not only that nothing fitted (V4). Where no branch stands out it chooses none. It judges
 * nothing. Called by `explain.ts`.
 */
export type Unit = { readonly keyword: string; readonly field: string; readonly location: string };
/** Units under `location`, at `field` or below, are not told. */
export type Hidden = { readonly location: string; readonly field: string };
export type Choice = {
	readonly hidden: readonly Hidden[];
	/** Places of `anyOf` and `oneOf` units whose best branch speaks for them. */
	readonly told: ReadonlySet<number>;
	/** Places of those whose branches all refuse the same tag (`type: "crad"`), with the places of the refusals. */
	readonly tagged: ReadonlyMap<number, readonly number[]>;
};

/** A branch for another kind of value is not what was meant; a wrong tag (`type: "card"`) speaks against it. */
const WRONG_KIND = 10_000;
const WRONG_TAG = 100;

/**
 * Units stand in the validator's order: those of the branches follow their `anyOf` or `oneOf`. `count` says how many
 * branches the unit at a place has: where some have no units, they fitted (`oneOf` failed because several did) or were cut
 * off, and none is chosen. `wraps` tells keywords whose unit only wraps others.
 */
export function chooseBranches(
	units: readonly Unit[],
	count: (at: number) => number,
	wraps: (keyword: string) => boolean,
): Choice {
	const hidden: Hidden[] = [];
	const told = new Set<number>();
	const tagged = new Map<number, readonly number[]>();
	for (const [at, unit] of units.entries()) {
		if (unit.keyword !== "anyOf" && unit.keyword !== "oneOf") continue;
		const branches = branchesOf(units, at);
		const complete = branches.size === count(at);
		const tags = complete ? tagsOf(units, branches, unit.field) : [];
		if (tags.length > 0) tagged.set(at, tags);
		const best = complete && tags.length === 0 ? bestOf(units, branches, unit.field, wraps) : undefined;
		if (best === undefined) hidden.push({ location: unit.location, field: unit.field });
		else {
			told.add(at);
			for (const name of branches.keys())
				if (name !== best) hidden.push({ location: `${unit.location}/${name}`, field: unit.field });
		}
	}
	return { hidden, told, tagged };
}

/** Places of units by the index of their branch. */
type Branches = ReadonlyMap<string, readonly number[]>;

function branchesOf(units: readonly Unit[], at: number): Branches {
	const { location } = units[at] as Unit;
	const branches = new Map<string, number[]>();
	for (let i = at + 1; i < units.length; i += 1) {
		const inner = units[i] as Unit;
		if (!inner.location.startsWith(`${location}/`)) break;
		const name = inner.location.slice(location.length + 1).split("/", 1)[0] as string;
		const known = branches.get(name);
		if (known === undefined) branches.set(name, [i]);
		else known.push(i);
	}
	return branches;
}

const isWrongKind = (unit: Pick<Unit, "keyword" | "field">, field: string): boolean =>
	unit.field === field && (unit.keyword === "type" || unit.keyword === "false");

/** Where each branch for this kind of value refuses the same direct member: the first refusal of each; empty when there is no such. */
function tagsOf(units: readonly Unit[], branches: Branches, field: string): number[] {
	let shared: ReadonlyMap<string, readonly number[]> | undefined;
	const kin = [...branches.values()].filter((places) => !places.some((at) => isWrongKind(units[at] as Unit, field)));
	for (const places of kin) {
		const own = new Map<string, readonly number[]>();
		for (const at of places) {
			const { keyword, field: where } = units[at] as Unit;
			const isTag = (keyword === "const" || keyword === "enum") && where.lastIndexOf("/") === field.length;
			const before = shared === undefined ? [] : shared.get(where);
			if (isTag && before !== undefined && !own.has(where)) own.set(where, [...before, at]);
		}
		shared = own;
	}
	return kin.length < 2 ? [] : [...([...(shared ?? [])][0]?.[1] ?? [])];
}

function bestOf(
	units: readonly Unit[],
	branches: Branches,
	field: string,
	wraps: (keyword: string) => boolean,
): string | undefined {
	let best: string | undefined;
	let least = WRONG_KIND;
	for (const [name, places] of branches) {
		let score = 0;
		for (const at of places) {
			const { keyword, field: where } = units[at] as Unit;
			if (wraps(keyword)) continue;
			score += 1;
			if (isWrongKind({ keyword, field: where }, field)) score += WRONG_KIND;
			if (keyword === "const" || keyword === "enum") score += WRONG_TAG;
		}
		if (score < least) {
			least = score;
			best = name;
		} else if (score === least) best = undefined;
	}
	return best;
}
