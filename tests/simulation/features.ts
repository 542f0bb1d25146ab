/**
 * What some schedules have and others have not, by their seed. Each feature throws dice of its own, so a seed without it plays
 * as it did before the feature came. The seeds of regressions.json have only those that they were found with (`has`).
 */
import { Dice } from "./dice.ts";

export type Features = {
	/** Tools with checks of their own: what goes wrong with them. */
	readonly checks: Dice | null;
	/** Runs that may make some calls only, or cost so much and no more: how many, how much, and what is not known of it. */
	readonly limits: Dice | null;
	/** When all is at rest, finished runs are played again: which, and how. */
	readonly replays: Dice | null;
};

/** What the schedule of this seed has. */
export function featuresOf(seed: number): Features {
	return {
		checks: seed % 10 === 9 ? new Dice(seed ^ 0x51ed270b) : null,
		limits: seed % 11 === 9 ? new Dice(seed ^ 0x3c6ef372) : null,
		replays: seed % 13 === 7 ? new Dice(seed ^ 0x2b992ddf) : null,
	};
}
