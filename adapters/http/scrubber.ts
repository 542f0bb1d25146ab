/**
 * Takes secrets back out of what an upstream says (case S03: an error page that echoes the Authorization header). It
 * knows the spellings that echoes use: plain, percent-encoded, form-encoded, JSON- and HTML-escaped, base64. It cannot
 * find what an upstream disguises on purpose; an upstream that was given the secret has it anyway. Called by the http and
 * notify invokers on everything that leaves them.
 */
import { type Json, type JsonObject, put, wellFormed } from "#core/json.ts";
import { JSON_DEPTH_MAX } from "#core/limits.ts";

const MASK = "[secret]";

export class Scrubber {
	#needles: string[] = [];

	/** Adds a secret in all its spellings. */
	add(secret: string): void {
		if (secret.trim() === "") return;
		if (secret !== secret.trim()) this.add(secret.trim()); // a header arrives without the spaces around it
		const bytes = Buffer.from(secret, "utf8");
		const percent = encodeURIComponent(wellFormed(secret));
		const spellings = [
			secret,
			percent,
			percent.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
			new URLSearchParams([["", secret]]).toString().slice(1),
			JSON.stringify(secret).slice(1, -1),
			secret.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;"),
			bytes.toString("base64"),
			bytes.toString("base64").replace(/=+$/, ""),
			bytes.toString("base64url"),
		];
		// The longest first: a shorter spelling inside a longer one would leave its tail behind.
		this.#needles = [...new Set([...this.#needles, ...spellings])].sort((a, b) => b.length - a.length);
	}

	/** Length of the longest spelling, in characters: how much of a cut text's end may hold the beginning of one. */
	get longest(): number {
		return this.#needles[0]?.length ?? 0;
	}

	holds(text: string): boolean {
		return this.#needles.some((needle) => text.includes(needle));
	}

	/** The text without secrets and without lone surrogates. */
	text(text: string): string {
		let clean = text;
		for (const needle of this.#needles) clean = clean.replaceAll(needle, MASK);
		return wellFormed(clean);
	}

	/** The same for every string, name and number of a value; undefined when it is nested deeper than JSON_DEPTH_MAX. */
	json(value: Json, depth = 0): Json | undefined {
		if (depth > JSON_DEPTH_MAX) return undefined;
		if (typeof value === "string") return this.text(value);
		if (typeof value === "number") return this.holds(String(value)) ? MASK : value;
		if (typeof value !== "object" || value === null) return value;
		if (Array.isArray(value)) {
			const items: Json[] = [];
			for (const item of value) {
				const clean = this.json(item, depth + 1);
				if (clean === undefined) return undefined;
				items.push(clean);
			}
			return items;
		}
		const members: JsonObject = {};
		for (const [name, member] of Object.entries(value)) {
			const clean = this.json(member, depth + 1);
			if (clean === undefined) return undefined;
			put(members, this.text(name), clean);
		}
		return members;
	}
}
