/**
 * Reads a response body with a cap on its decompressed bytes, so a small compressed answer cannot fill memory, and tells
 * text from bytes. It parses nothing. Called by the http invoker and the token client.
 */
import type { Deadline } from "./deadline.ts";

export type ReadBody = { readonly bytes: Uint8Array; readonly cut: boolean };

/** At most `max` bytes; `cut` when there were more. Rejects when the connection is lost or time is up. */
export async function readBody(response: Response, max: number, deadline: Deadline): Promise<ReadBody> {
	if (response.body === null) return { bytes: new Uint8Array(0), cut: false };
	const reader = response.body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
	const chunks: Uint8Array[] = [];
	let length = 0;
	try {
		for (;;) {
			const { done, value } = await deadline.race(reader.read());
			if (done) return { bytes: join(chunks, length), cut: false };
			chunks.push(value);
			length += value.byteLength;
			if (length > max) return { bytes: join(chunks, length).subarray(0, max), cut: true };
		}
	} finally {
		reader.cancel().catch(() => undefined); // after the end a no-op; else it lets the connection go
	}
}

function join(chunks: readonly Uint8Array[], length: number): Uint8Array {
	const whole = new Uint8Array(length);
	let at = 0;
	for (const chunk of chunks) {
		whole.set(chunk, at);
		at += chunk.byteLength;
	}
	return whole;
}

/** A media type without parameters, lowercase; empty when there is none. */
export function mediaType(response: Response): string {
	return (response.headers.get("content-type") ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

export function isJsonType(type: string): boolean {
	return type === "application/json" || type === "text/json" || type.endsWith("+json");
}

export function isTextType(type: string): boolean {
	if (type === "" || type.startsWith("text/") || isJsonType(type) || type.endsWith("+xml")) return true;
	return /^application\/(?:xml|javascript|x-www-form-urlencoded|yaml|x-yaml|toml|x-ndjson|jsonl|graphql|sql|csv)$/.test(
		type,
	);
}

/** Text in the charset that the response names, UTF-8 otherwise; what does not decode becomes U+FFFD. */
export function decodeText(bytes: Uint8Array, contentType: string | null): string {
	const charset = /;\s*charset="?([^";\s]+)/i.exec(contentType ?? "")?.[1] ?? "utf-8";
	try {
		return new TextDecoder(charset).decode(bytes);
	} catch {
		return new TextDecoder().decode(bytes); // an unknown charset is no reason to lose the answer
	}
}
