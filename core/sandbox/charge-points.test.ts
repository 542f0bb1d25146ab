/**
 * Fuel never under-counts. Random programs count their own instructions as they run; what was charged has to cover it, on
 * every path. The generator is seeded, so a failure names the program that failed.
 */
import { describe, expect, it } from "vitest";
import { admitModule, FUEL_EXPORT } from "./admit-module.ts";
import { ByteWriter } from "./byte-writer.ts";
import { PREAMBLE } from "./sections.ts";

const END = 0x0b;
const FUEL = 1n << 40n;
const LOOPS_MAX = 4;
const Compiled = WebAssembly.Module as unknown as new (bytes: Uint8Array) => WebAssembly.Module;

/** A small linear generator: the same seed gives the same program. */
function dice(seed: number): (sides: number) => number {
	let state = (seed * 2654435761) >>> 0;
	return (sides) => {
		state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
		return (state >>> 8) % sides;
	};
}

/** Code of a function `(i32 choices)`; global 0 counts the instructions that run. */
function randomCode(seed: number): Uint8Array {
	const roll = dice(seed);
	const w = new ByteWriter();
	/** Enclosing labels, innermost last; only blocks are jumped to, so every program ends. */
	const labels: ("block" | "loop")[] = [];
	let budget = 60;

	const condition = (): void => {
		w.raw([0x20, 0, 0x41, roll(32), 0x76, 0x41, 1, 0x71]); // (choices >> n) & 1
	};
	const segment = (): void => {
		const idle = roll(12);
		w.raw([0x23, 0, 0x41, idle + 4, 0x6a, 0x24, 0]); // four instructions count themselves and the idle ones
		for (let i = 0; i < idle; i++) w.u8(0x01);
	};
	const target = (): number | undefined => {
		const blocks = labels.flatMap((kind, at) => (kind === "block" ? [labels.length - 1 - at] : []));
		return blocks[roll(Math.max(1, blocks.length))];
	};
	const nested = (kind: "block" | "loop", body: () => void): void => {
		labels.push(kind);
		body();
		labels.pop();
		w.u8(END);
	};
	const statements = (depth: number): void => {
		for (let n = 1 + roll(4); n > 0 && budget > 0; n--) statement(depth);
	};
	const statement = (depth: number): void => {
		budget--;
		segment();
		const loops = labels.filter((kind) => kind === "loop").length;
		switch (depth > 5 ? 0 : roll(7)) {
			case 1:
				w.raw([0x02, 0x40]);
				nested("block", () => statements(depth + 1));
				break;
			case 2:
			case 3:
				condition();
				w.raw([0x04, 0x40]);
				nested("block", () => {
					statements(depth + 1);
					if (roll(2) === 0) {
						w.u8(0x05);
						statements(depth + 1);
					}
				});
				break;
			case 4: {
				if (loops >= LOOPS_MAX) break;
				const counter = 1 + loops;
				w.raw([0x41, 1 + roll(3), 0x21, counter, 0x03, 0x40]);
				nested("loop", () => {
					statements(depth + 1);
					w.raw([0x20, counter, 0x41, 1, 0x6b, 0x22, counter, 0x0d, 0]);
				});
				break;
			}
			case 5: {
				const to = target();
				if (to === undefined) break;
				condition();
				w.u8(0x0d).u32(to);
				break;
			}
			case 6: {
				const [one, other] = [target(), target()];
				if (one === undefined || other === undefined) break;
				// Sometimes leave by a table, so that code behind it is dead in this arm.
				condition();
				w.raw([0x04, 0x40]).raw([0x20, 0, 0x41, 3, 0x71]);
				w.raw([0x0e, 2])
					.u32(one + 1)
					.u32(other + 1)
					.u32(one + 1);
				w.raw([0x01, END]);
				break;
			}
		}
		segment();
	};
	nested("block", () => statements(0));
	return new ByteWriter().raw([1, LOOPS_MAX, 0x7f]).raw(w.done()).done();
}

function moduleOf(body: Uint8Array): Uint8Array {
	const section = (w: ByteWriter, id: number, content: ByteWriter): ByteWriter => w.u8(id).sized(content.done());
	const w = new ByteWriter().raw(PREAMBLE);
	section(w, 1, new ByteWriter().raw([1, 0x60, 1, 0x7f, 0]));
	section(w, 3, new ByteWriter().raw([1, 0]));
	section(w, 6, new ByteWriter().raw([1, 0x7f, 1, 0x41, 0, END]));
	section(w, 7, new ByteWriter().u32(2).ascii("f").raw([0, 0]).ascii("ran").raw([3, 0]));
	section(w, 10, new ByteWriter().u32(1).sized(body));
	return w.done();
}

describe("charges", () => {
	it("cover every instruction that runs, on every path of 300 random programs", () => {
		let paths = 0;
		let charged = 0n;
		let executed = 0n;
		for (let seed = 1; seed <= 300; seed++) {
			const admission = admitModule(moduleOf(randomCode(seed)), {
				memory_max_pages: 1,
				validate: (b) => WebAssembly.validate(b as BufferSource),
			});
			if (!admission.ok) throw new Error(`program ${seed}: ${admission.message}`);
			const exports = new WebAssembly.Instance(new Compiled(admission.bytes)).exports as never as {
				f(choices: number): void;
				ran: WebAssembly.Global;
				[FUEL_EXPORT]: WebAssembly.Global;
			};
			for (const choices of [0, -1, 0x55555555, 0x33333333, seed * 40503]) {
				exports.ran.value = 0;
				exports[FUEL_EXPORT].value = FUEL;
				exports.f(choices);
				const used = FUEL - (exports[FUEL_EXPORT].value as bigint);
				const ran = BigInt(exports.ran.value as number);
				expect(used >= ran, `program ${seed}, choices ${choices}: ${ran} ran, ${used} charged`).toBe(true);
				paths++;
				charged += used;
				executed += ran;
			}
		}
		expect(paths).toBe(1_500);
		// And not absurdly more: conditions and jumps are charged and not counted, and an untaken arm may be the longer one.
		expect(Number(charged) / Number(executed)).toBeLessThan(4);
	});
});
