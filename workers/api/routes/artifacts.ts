/**
 * `/v1/artifacts`: results that were too large to keep with their run. Whoever may read the run may read its artifacts,
 * so the run is asked every time; an id is no right, and a guessed, foreign and retired one get the same answer. Served as
 * a download of inert type: what a tool returned must never run as a page of Belay's own origin.
 */
import { R2Artifacts, type ReadArtifact } from "#adapters/r2/r2-artifacts.ts";
import { randomBytes } from "#adapters/random.ts";
import { runOf } from "#core/ids.ts";
import { type Ctx, noun } from "../noun.ts";
import { ApiProblem, notFound, problem } from "../problem.ts";
import { askRun } from "../run-object.ts";

const RETRY_AFTER_S = 2;
/** What a file's name ends with, by the media types that Belay stores. */
const ENDINGS: Readonly<Record<string, string>> = { "application/json": "json", "text/plain": "txt" };

export const artifacts = noun("/v1/artifacts", "Artifacts");

artifacts.get(
	"/:artifact_id",
	{
		summary: "download a large result; for whoever may read its run",
		access: { who: "caller" },
		answers: { 200: "application/json" },
	},
	async (c) => {
		const artifact_id = c.req.param("artifact_id");
		const run_id = artifact_id.startsWith("art_") ? runOf(artifact_id) : undefined;
		if (run_id === undefined) throw notFound();
		await requireReadable(c, run_id);
		const found = await stored(c, artifact_id);
		if (found === undefined) throw notFound();
		const ending = ENDINGS[found.media_type];
		return c.body(found.body.pipeThrough(new FixedLengthStream(found.bytes)), 200, {
			"content-type": ending === undefined ? "application/octet-stream" : found.media_type,
			"content-disposition": `attachment; filename="${artifact_id}.${ending ?? "bin"}"`,
			"content-length": String(found.bytes),
			etag: `"${found.sha256}"`,
			"x-content-type-options": "nosniff",
		});
	},
);

/** Throws the 404 of an unknown artifact, word for word, where the run says 404 of itself. */
async function requireReadable(c: Ctx, run_id: string): Promise<void> {
	const ask = { v: 1 as const, caller: c.get("caller"), after_seq: null, wait_ms: 0 };
	await askRun(c.env, run_id, "read", (run) => run.read(ask)).catch((error: unknown) => {
		throw error instanceof ApiProblem && error.status === 404 ? notFound() : error;
	});
}

async function stored(c: Ctx, artifact_id: string): Promise<ReadArtifact | undefined> {
	try {
		return await new R2Artifacts(c.env.ARTIFACTS, randomBytes).get(c.get("caller").tenant_id, artifact_id);
	} catch (error) {
		const name = error instanceof Error ? error.name : typeof error;
		console.error(JSON.stringify({ level: "warn", what: "artifact store unreachable", error: name }));
		throw problem("store_unavailable", "the artifact store does not answer just now; try again", {
			retry_after_s: RETRY_AFTER_S,
		});
	}
}
