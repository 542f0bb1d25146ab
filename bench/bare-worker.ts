/**
 * The yardstick: the least that a call to a Durable Object can cost. A POST with a JSON body, parsed, one RPC to an object by
 * name, a JSON answer. No identity, no policy, no storage, no evidence. Served beside Belay, in the same workerd.
 */
import { DurableObject } from "cloudflare:workers";

export class BareObject extends DurableObject {
	echo(value: unknown): { value: unknown } {
		return { value };
	}
}

type BareStub = { echo(value: unknown): Promise<{ value: unknown }> };

export default {
	async fetch(request: Request, env: { BARE: DurableObjectNamespace }): Promise<Response> {
		const name = new URL(request.url).pathname;
		const object = env.BARE.getByName(name) as unknown as BareStub;
		return Response.json(await object.echo(await request.json()));
	},
};
