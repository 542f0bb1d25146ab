/** Whether a model decides for the run. A script ends by itself, and an external planner's loop is its caller's own. */
import type { PlannerKind } from "./state.ts";

export const isModel = (kind: PlannerKind): boolean => kind === "openai" || kind === "workers_ai";
