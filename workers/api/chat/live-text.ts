/**
 * Puts a stream's text together. What the planner writes is passed on as it comes, without waiting for the turn to be
 * judged, so what was sent may turn out not to be the answer (text beside a call, a turn that was asked again). The rule:
 * what is sent always ends with the final text, whole; what came before it that is no part of it stands apart by a blank line.
 */
const APART = "\n\n";

export class LiveText {
	/** Turns up to this one may have begun before anybody listened: a piece of them may be a middle. */
	readonly #base_turn: number;
	#turn = 0;
	/** What was sent of the present turn, and whether anything was sent before it. */
	#sent = "";
	#before = false;

	constructor(base_turn: number) {
		this.#base_turn = base_turn;
	}

	/** A piece of the planner's text -> what to send for it, perhaps nothing. */
	piece(turn: number, text: string): string {
		if (turn <= this.#base_turn || turn < this.#turn || text === "") return "";
		if (turn > this.#turn) this.#next(turn);
		const out = this.#sent === "" && this.#before ? APART + text : text;
		this.#sent += text;
		return out;
	}

	/** The final text -> what is missing of it. */
	rest(final: string): string {
		if (this.#sent !== "" && final.startsWith(this.#sent)) return final.slice(this.#sent.length);
		this.#next(this.#turn);
		return this.#before && final !== "" ? APART + final : final;
	}

	#next(turn: number): void {
		this.#turn = turn;
		this.#before ||= this.#sent !== "";
		this.#sent = "";
	}
}
