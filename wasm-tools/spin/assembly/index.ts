// `spin`: misbehaves on request, so that the tests can prove each limit. Not part of the product.
// The input is one of the JSON strings below.

@external("harness", "log")
declare function log(pointer: usize, length: i32): void;

let calls = 0;

export function alloc(length: i32): usize {
	return heap.alloc(length);
}

export function run(pointer: usize, length: i32): u64 {
	const wish = String.UTF8.decodeUnsafe(pointer + 1, length - 2);
	if (wish === "spin") while (true) calls++;
	if (wish === "recurse") return answer(`${deeper(0)}`);
	if (wish === "grow") {
		let pages = 0;
		while (memory.grow(1) >= 0) pages++;
		return answer(`{"pages":${pages}}`);
	}
	if (wish === "fill") {
		memory.grow(4);
		while (true) memory.fill(131072, 7, 65536);
	}
	if (wish === "exhaust") while (true) heap.alloc(1 << 20);
	if (wish === "shout") while (true) log(pointer, length);
	if (wish === "trap") unreachable();
	if (wish === "outside") return (<u64>0xfffffff0 << 32) | 4096;
	if (wish === "huge") return (<u64>0 << 32) | 0x7fffffff;
	if (wish === "log outside") log(0xfffffff0, 4096);
	if (wish === "no json") return answer("{");
	if (wish === "no utf8") {
		const bytes = heap.alloc(3);
		store<u8>(bytes, 0x22);
		store<u8>(bytes + 1, 0xff);
		store<u8>(bytes + 2, 0x22);
		return (<u64>bytes << 32) | 3;
	}
	if (wish === "deep") return answer("[".repeat(5000) + "]".repeat(5000));
	if (wish === "large integer") return answer('{"id":12345678901234567890}');
	return answer(`{"calls":${++calls}}`);
}

function deeper(depth: i32): i32 {
	return depth < 0 ? 0 : deeper(depth + 1) + deeper(depth + 2);
}

function answer(json: string): u64 {
	const bytes = String.UTF8.encode(json);
	return (<u64>changetype<usize>(bytes) << 32) | <u64>bytes.byteLength;
}
