/**
 * `npm run eval -- recordings.jsonl --min-first 0.88 --min-repaired 0.95`: how often a planner's calls are valid, at the
 * first try and after repairs (V5). Plays recordings; it asks no model. Exits 1 below a threshold or when a recording does
 * not come out as it says, 2 when the file cannot be read. The format is in `ops/eval/recording.ts`.
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { play } from "./eval/play.ts";
import { readRecordings } from "./eval/recording.ts";
import { printed, report } from "./eval/report.ts";

/** Returns the exit code. */
function evaluate(): number {
	const { values, positionals } = parseArgs({
		allowPositionals: true,
		options: {
			/** Least share valid at the first try. */
			"min-first": { type: "string", default: "0" },
			/** Least share valid after at most three repairs. */
			"min-repaired": { type: "string", default: "0" },
			json: { type: "boolean", default: false },
		},
	});
	const [file] = positionals;
	if (file === undefined) throw new Error("name a file of recordings");
	const first = shareOf(values["min-first"]);
	const repaired = shareOf(values["min-repaired"]);
	const recordings = readRecordings(textOf(file));
	if (recordings.length === 0) throw new Error("the file holds no recordings");
	const result = report(recordings.map(play));
	console.log(values.json ? JSON.stringify(result, null, "\t") : printed(result));
	const missed = [
		...((result.valid[0] ?? 0) < first ? [`fewer than ${first} of the first tries are valid`] : []),
		...((result.valid[3] ?? 0) < repaired ? [`fewer than ${repaired} are valid after three repairs`] : []),
	];
	for (const one of missed) console.error(one);
	return missed.length + result.unexpected.length === 0 ? 0 : 1;
}

function textOf(file: string): string {
	try {
		return readFileSync(file, "utf8");
	} catch {
		throw new Error(`cannot read \`${file}\``);
	}
}

function shareOf(text: string): number {
	const share = Number(text);
	if (text.trim() === "" || !(share >= 0 && share <= 1)) throw new Error(`not a share between 0 and 1: \`${text}\``);
	return share;
}

try {
	process.exitCode = evaluate();
} catch (error) {
	console.error(error instanceof Error ? error.message : String(error));
	process.exitCode = 2;
}
