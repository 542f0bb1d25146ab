// `text_stats`: `{"text": string}` -> `{"characters", "words", "lines"}`, or `{"error": string}`.
// Characters are code points; words are runs of anything but white space; an empty text has no line.
//
// It reads the one member that it needs straight from the JSON bytes: the host hands in well-formed JSON.

@external("harness", "log")
declare function log(pointer: usize, length: i32): void;

export function alloc(length: i32): usize {
	return heap.alloc(length);
}

export function run(pointer: usize, length: i32): u64 {
	const end = pointer + length;
	const text = findText(pointer, end);
	if (text === 0) return answer('{"error":"`text` must be a string"}');

	let characters = 0;
	let words = 0;
	let lines = 0;
	let inWord = false;
	let last = 10;
	let at = text;
	while (at < end) {
		const byte = load<u8>(at);
		if (byte === 0x22) break; // the closing quote
		let code: i32 = byte;
		if (byte === 0x5c) {
			const escape = load<u8>(at + 1);
			if (escape === 0x75) {
				code = hex(at + 2);
				at += 6;
				// The second half of a pair belongs to the character before it.
				if (code >= 0xdc00 && code <= 0xdfff) continue;
			} else {
				code = escape === 0x6e ? 10 : escape === 0x72 ? 13 : escape === 0x74 ? 9 : escape;
				at += 2;
			}
		} else {
			at += 1;
			if ((byte & 0xc0) === 0x80) continue; // inside a UTF-8 sequence
			// U+00A0, U+2000 to U+200A, U+2028, U+2029, U+3000 as words see them.
			if (byte >= 0xc2) code = codePoint(at - 1, end);
		}
		characters++;
		if (code === 10) lines++;
		last = code;
		if (isSpace(code)) inWord = false;
		else if (!inWord) {
			inWord = true;
			words++;
		}
	}
	if (last !== 10) lines++; // a last line without its line feed
	const said = `counted ${characters} characters`;
	const bytes = String.UTF8.encode(said);
	log(changetype<usize>(bytes), bytes.byteLength);
	return answer(`{"characters":${characters},"words":${words},"lines":${lines}}`);
}

/** Where the value of the top-level member `text` starts, behind its quote; 0 when it is absent or no string. */
function findText(from: usize, end: usize): usize {
	let depth = 0;
	let at = from;
	let found: usize = 0;
	while (at < end) {
		const byte = load<u8>(at);
		if (byte === 0x7b || byte === 0x5b) depth++;
		else if (byte === 0x7d || byte === 0x5d) depth--;
		else if (byte === 0x22) {
			const start = at + 1;
			at = closing(start, end);
			// A key is what a colon follows; the last `text` wins, as in JSON.parse.
			let next = skipSpace(at + 1, end);
			if (depth === 1 && next < end && load<u8>(next) === 0x3a && isTextKey(start, at)) {
				next = skipSpace(next + 1, end);
				found = next < end && load<u8>(next) === 0x22 ? next + 1 : 0;
			}
		}
		at++;
	}
	return found;
}

function closing(from: usize, end: usize): usize {
	let at = from;
	while (at < end && load<u8>(at) !== 0x22) at += load<u8>(at) === 0x5c ? 2 : 1;
	return at;
}

function skipSpace(from: usize, end: usize): usize {
	let at = from;
	while (at < end && load<u8>(at) <= 0x20) at++;
	return at;
}

function isTextKey(start: usize, end: usize): bool {
	return end - start === 4 && load<u32>(start) === 0x74786574; // "text", little-endian
}

function hex(from: usize): i32 {
	let value = 0;
	for (let i: usize = 0; i < 4; i++) {
		const digit = <i32>load<u8>(from + i) | 0x20;
		value = value * 16 + (digit >= 0x61 ? digit - 0x57 : digit - 0x30);
	}
	return value;
}

function codePoint(at: usize, end: usize): i32 {
	const first = <i32>load<u8>(at);
	if (first < 0xe0 && at + 1 < end) return ((first & 0x1f) << 6) | (<i32>load<u8>(at + 1) & 0x3f);
	if (first < 0xf0 && at + 2 < end)
		return ((first & 0x0f) << 12) | ((<i32>load<u8>(at + 1) & 0x3f) << 6) | (<i32>load<u8>(at + 2) & 0x3f);
	return first; // beyond U+FFFF there is no white space
}

function isSpace(code: i32): bool {
	return (
		code === 0x20 ||
		(code >= 9 && code <= 13) ||
		code === 0xa0 ||
		(code >= 0x2000 && code <= 0x200a) ||
		code === 0x2028 ||
		code === 0x2029 ||
		code === 0x3000
	);
}

function answer(json: string): u64 {
	const bytes = String.UTF8.encode(json);
	return (<u64>changetype<usize>(bytes) << 32) | <u64>bytes.byteLength;
}
