/**
 * Shows data exactly (A19): as JSON, every invisible character spelled out, every cut announced with both lengths and the
 * whole behind it in a `<details>`. The end of a long text is shown too: what matters may be hidden behind five thousand
 * spaces. Markup in the data stays text, which is hono/jsx's escaping.
 */
import type { Child } from "hono/jsx";
import type { Json } from "#core/json.ts";
import { visible } from "./visible.ts";
import type { Words } from "./words.ts";

/** Longer texts are shown in part: this much of the beginning and of the end. */
const WHOLE_MAX_CHARS = 600;
const HEAD_CHARS = 400;
const TAIL_CHARS = 150;

/** Pretty JSON with two spaces of indent, as nodes for a `<pre>`. */
export function ExactJson({ value, words }: { value: Json; words: Words }): Child {
	return <pre tabindex={0}>{nodes(value, "", words)}</pre>;
}

/** `after` follows the value directly, before what can be unfolded. */
function nodes(value: Json, indent: string, words: Words, after = ""): Child {
	if (typeof value === "string") return <Quoted text={value} words={words} after={after} />;
	if (typeof value !== "object" || value === null) return `${JSON.stringify(value)}${after}`;
	const inner = `${indent}  `;
	const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
	const entries = Object.entries(value);
	if (entries.length === 0) return `${open}${close}${after}`;
	return (
		<>
			{open}
			{entries.map(([key, one], at) => (
				<>
					{`\n${inner}`}
					{Array.isArray(value) ? null : <Quoted text={key} words={words} after=": " />}
					{nodes(one, inner, words, at < entries.length - 1 ? "," : "")}
				</>
			))}
			{`\n${indent}${close}${after}`}
		</>
	);
}

/** How many texts `ExactJson` folds, names included, and how many characters of them are out of sight. */
export function foldedIn(value: Json): { parts: number; characters: number } {
	if (typeof value === "string") {
		const { length } = visible(JSON.stringify(value));
		return length <= WHOLE_MAX_CHARS
			? { parts: 0, characters: 0 }
			: { parts: 1, characters: length - HEAD_CHARS - TAIL_CHARS };
	}
	if (typeof value !== "object" || value === null) return { parts: 0, characters: 0 };
	const inside = Array.isArray(value) ? value : Object.entries(value).flat();
	return inside.map(foldedIn).reduce(
		(sum, one) => ({
			parts: sum.parts + one.parts,
			characters: sum.characters + one.characters,
		}),
		{ parts: 0, characters: 0 },
	);
}

/** JSON encodes quotes, backslashes and controls, so a spelled-out `\u202E` cannot be confused with the same six characters. */
function Quoted({ text, words, after }: { text: string; words: Words; after: string }): Child {
	return <Cut shown={visible(JSON.stringify(text))} words={words} after={after} />;
}

/** Free text of others (goal, summary, reason), shown by the same rules. */
export function ExactText({ text, words }: { text: string; words: Words }): Child {
	if (text === "") return <span class="cut">{words.empty_text}</span>;
	return <Cut shown={visible(text)} words={words} after="" />;
}

function Cut({ shown, words, after }: { shown: string; words: Words; after: string }): Child {
	if (shown.length <= WHOLE_MAX_CHARS) {
		return (
			<>
				<Gaps text={shown} words={words} />
				{after}
			</>
		);
	}
	const head = wholeCharacters(shown.slice(0, HEAD_CHARS));
	const tail = wholeCharacters(shown.slice(-TAIL_CHARS));
	return (
		<>
			<Gaps text={head} words={words} />
			<span class="cut"> […] </span>
			<Gaps text={tail} words={words} />
			{after}
			<details>
				<summary>{words.show_all(HEAD_CHARS + TAIL_CHARS, shown.length)}</summary>
				<pre tabindex={0}>{shown}</pre>
			</details>
		</>
	);
}

/** A long run of spaces is counted, so that it neither hides what follows nor passes for an empty line. */
function Gaps({ text, words }: { text: string; words: Words }): Child {
	const parts = text.split(/( {9,})/);
	return (
		<>{parts.map((part) => (/^ {9,}$/.test(part) ? <span class="cut">⟨{words.spaces(part.length)}⟩</span> : part))}</>
	);
}

/** A cut may fall between the halves of a surrogate pair; a lone half is dropped. */
const wholeCharacters = (text: string): string => text.replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, "");
