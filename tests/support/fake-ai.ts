/**
 * What stands in for the Workers AI binding in the tests: a Worker of its own, bound as `AI`, whose `run` hands the request on to
 * `planner.test` (see `outside.ts`) and answers its stream, or throws as the platform does. Source text: it runs beside the tested Worker.
 */
export const FAKE_AI = `
import { WorkerEntrypoint } from "cloudflare:workers";
export default { fetch: () => new Response(null, { status: 404 }) };
export class FakeAi extends WorkerEntrypoint {
	async run(model, inputs) {
		const body = JSON.stringify({ ...inputs, model });
		const answer = await fetch("https://planner.test/workers-ai", { method: "POST", body });
		if (!answer.ok) throw new Error("3036: Account limited (as asked: " + answer.status + ")");
		return answer.body;
	}
}
`;
