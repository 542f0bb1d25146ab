/**
 * Decides where a function pays fuel and how much. Every reachable point of the code has exactly one open charge point
 * behind it; a charge is the LONGEST way from its point to the next one, paid in advance. So fuel never under-counts, no
 * cycle is free (each loop head is a point of its own), and the charges are few.
 *
 * New points: function entry, loop head, a place where ways from different points meet, the way out of a loop (else the
 * code behind the loop would be paid on every round), a target of `br_table` (else every case would pay for the longest).
 *
 * Called by `meterBody`, one instruction at a time. It relies on the engine's validation for types, not for structure.
 */
import type { Instruction } from "./opcodes.ts";
import { reject } from "./rejection.ts";

/** Before the byte at `at`, take `cost` fuel. `loops` is how many loops enclose it. */
type Point = { readonly at: number; readonly loops: number; cost: number };
/** Standing somewhere: the point that pays, and the longest cost since it. */
type Standing = { point: Point; cost: number };

type Label = {
	readonly kind: "block" | "loop" | "if" | "else";
	readonly loops: number;
	/** An `if`: where its `else`, or the code behind it, goes on from. */
	readonly entered: Standing | null;
	/** What has branched or fallen to the end of it so far. */
	arrived: Standing | null;
	mustPay: boolean;
};

export class ChargePoints {
	readonly #points: Point[] = [];
	readonly #labels: Label[] = [];
	#loops = 0;
	/** Null in code that cannot be reached: it never runs, so it pays nothing. */
	#here: Standing | null = null;

	/** `entry` is the position of the first instruction, `cost` the price of entering the function. */
	constructor(entry: number, cost: number) {
		this.#open(entry);
		this.#push("block");
		this.#pay(cost);
	}

	/** The function's last `end` has been seen. */
	get done(): boolean {
		return this.#labels.length === 0;
	}

	/** The points that cost anything, in the order of their positions. */
	get points(): readonly { readonly at: number; readonly cost: number }[] {
		return this.#points.filter((point) => point.cost > 0).sort((a, b) => a.at - b.at);
	}

	/** Takes in one instruction; `next` is the position behind it. */
	step(instruction: Instruction, next: number): void {
		this.#pay(instruction.cost);
		switch (instruction.flow) {
			case "next":
				return;
			case "block":
			case "if":
				this.#push(instruction.flow);
				return;
			case "loop":
				this.#push("loop");
				this.#loops++;
				if (this.#here !== null) this.#open(next);
				this.#pay(1);
				return;
			case "else":
				this.#else();
				return;
			case "end":
				this.#end(next);
				return;
			case "br_if":
			case "br":
			case "br_table":
				for (const depth of instruction.targets) this.#branch(depth, instruction.flow === "br_table");
				if (instruction.flow !== "br_if") this.#here = null;
				return;
			case "leave":
				this.#here = null;
				return;
		}
	}

	#pay(cost: number): void {
		if (this.#here === null) return;
		this.#here.cost += cost;
		this.#here.point.cost = Math.max(this.#here.point.cost, this.#here.cost);
	}

	#open(at: number): void {
		const point = { at, loops: this.#loops, cost: 0 };
		this.#points.push(point);
		this.#here = { point, cost: 0 };
	}

	#push(kind: Label["kind"], entered: Standing | null = this.#here): void {
		this.#labels.push({ kind, loops: this.#loops, entered: copy(entered), arrived: null, mustPay: false });
	}

	#else(): void {
		const label = this.#labels.pop();
		if (label?.kind !== "if") reject("malformed", "`else` without `if`");
		arrive(label, this.#here);
		this.#labels.push({ ...label, kind: "else" });
		this.#here = copy(label.entered);
	}

	#end(next: number): void {
		const label = this.#labels.pop();
		if (label === undefined) reject("malformed", "`end` without a block");
		if (this.#labels.length === 0) return;
		if (label.kind === "loop") {
			this.#loops--;
			if (this.#here !== null) this.#open(next);
			return;
		}
		arrive(label, this.#here);
		if (label.kind === "if") arrive(label, label.entered);
		this.#here = label.arrived;
		if (this.#here !== null && label.mustPay) this.#open(next);
	}

	#branch(depth: number, table: boolean): void {
		const label = this.#labels[this.#labels.length - 1 - depth];
		if (label === undefined) reject("malformed", "a branch leads out of its function");
		// Back to a loop head: that head is a charge point and pays for the round to come.
		if (label.kind === "loop" || this.#here === null) return;
		arrive(label, this.#here);
		if (table) label.mustPay = true;
	}
}

function copy(standing: Standing | null): Standing | null {
	return standing === null ? null : { point: standing.point, cost: standing.cost };
}

function arrive(label: Label, from: Standing | null): void {
	if (from === null) return;
	if (label.arrived === null) {
		label.arrived = copy(from);
		if (from.point.loops > label.loops) label.mustPay = true;
		return;
	}
	if (label.arrived.point !== from.point) label.mustPay = true;
	label.arrived.cost = Math.max(label.arrived.cost, from.cost);
}
