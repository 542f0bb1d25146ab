/**
 * Large results in R2 (I10). A key begins with the tenant, so no id leads into another tenant's artifacts; what was stored
 * is what is read, or the reading breaks off. It decides nobody's access: whoever serves an artifact asks its run first.
 * Written through `store-large-result.ts`, read by the artifacts route.
 */
import { createHash } from "node:crypto";
import { artifactId, type RandomBytes, runOf, runPart } from "#core/ids.ts";
import { invariant } from "#core/invariant.ts";
import { ARTIFACT_STORE_MS } from "#core/limits.ts";
import type { ArtifactStore, NewArtifact, StoredArtifact } from "#core/ports.ts";

export type ReadArtifact = {
	/** Ends with an error instead of its last bytes when they are not those that were stored. */
	readonly body: ReadableStream<Uint8Array>;
	readonly bytes: number;
	readonly sha256: string;
	readonly media_type: string;
	readonly run_id: string;
};

export class R2Artifacts implements ArtifactStore {
	readonly #bucket: R2Bucket;
	readonly #random: RandomBytes;
	readonly #answer_ms: number;

	constructor(bucket: R2Bucket, random: RandomBytes, answer_ms = ARTIFACT_STORE_MS) {
		this.#bucket = bucket;
		this.#random = random;
		this.#answer_ms = answer_ms;
	}

	async put({ tenant_id, run_id, tool_call_id, media_type, text }: NewArtifact): Promise<StoredArtifact> {
		const part = runPart(run_id);
		invariant(part !== undefined, "an artifact belongs to a run");
		const artifact_id = artifactId(part, this.#random);
		const body = new TextEncoder().encode(text);
		const sha256 = createHash("sha256").update(body).digest("hex");
		const key = keyOf(tenant_id, artifact_id);
		invariant(key !== undefined, "an artifact has a key");
		const stored = this.#bucket.put(key, body, {
			// R2 refuses the upload when what arrives is something else
			sha256,
			httpMetadata: { contentType: media_type },
			customMetadata: { tenant_id, run_id, tool_call_id, sha256 },
		});
		await within(stored, this.#answer_ms);
		return { artifact_id, bytes: body.byteLength, sha256 };
	}

	/** Undefined for what does not exist, is another tenant's, or is no artifact's id. Rejects when R2 is away or too slow. */
	async get(tenant_id: string, artifact_id: string): Promise<ReadArtifact | undefined> {
		const key = keyOf(tenant_id, artifact_id);
		const found = key === undefined ? null : await within(this.#bucket.get(key), this.#answer_ms);
		if (found === null) return undefined;
		const { tenant_id: owner, run_id, sha256 } = found.customMetadata ?? {};
		const ours = owner === tenant_id && run_id !== undefined && run_id === runOf(artifact_id) && sha256 !== undefined;
		if (!ours) {
			await found.body.cancel();
			return undefined;
		}
		const media_type = found.httpMetadata?.contentType ?? "application/octet-stream";
		return { body: checked(found.body, sha256), bytes: found.size, sha256, media_type, run_id };
	}
}

/** `tenant/run part/artifact id`. The id is of fixed form and the tenant escaped, so no two artifacts share a key. */
function keyOf(tenant_id: string, artifact_id: string): string | undefined {
	const run_id = artifact_id.startsWith("art_") ? runOf(artifact_id) : undefined;
	if (run_id === undefined) return undefined;
	return `${encodeURIComponent(tenant_id)}/${runPart(run_id)}/${artifact_id}`;
}

/** Holds the last piece back until the digest is known: a reader that got all bytes got the right ones. */
function checked(body: ReadableStream<Uint8Array>, sha256: string): ReadableStream<Uint8Array> {
	const hash = createHash("sha256");
	let held: Uint8Array | undefined;
	return body.pipeThrough(
		new TransformStream<Uint8Array, Uint8Array>({
			transform(piece, controller) {
				hash.update(piece);
				if (held !== undefined) controller.enqueue(held);
				held = piece;
			},
			flush(controller) {
				if (hash.digest("hex") !== sha256) controller.error(new Error("the artifact is not what was stored"));
				else if (held !== undefined) controller.enqueue(held);
			},
		}),
	);
}

/** Rejects after `ms`; an upload that ends later leaves an artifact that nothing refers to. */
async function within<T>(work: Promise<T>, ms: number): Promise<T> {
	let timer: ReturnType<typeof setTimeout> | undefined;
	const late = new Promise<never>((_, reject) => {
		timer = setTimeout(() => reject(new Error("the artifact store did not answer")), ms);
	});
	try {
		return await Promise.race([work, late]);
	} finally {
		clearTimeout(timer);
	}
}
