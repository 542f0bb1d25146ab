/** Answers of the object that are no values. */
import type { StepProblem } from "#core/run/effect.ts";
import type { Problem } from "./api.ts";

type Refused = { readonly ok: false; readonly problem: Problem };

export const no = (status: number, code: string, detail: string): Refused => ({
	ok: false,
	problem: { status, code, detail },
});
/** The same for what does not exist and for what the caller may not see. */
export const notFound = (): Refused => no(404, "not_found", "no such object");
export const refusal = (problem: StepProblem): Refused => ({ ok: false, problem });
