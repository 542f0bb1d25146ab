/**
 * Two yardsticks. Bare: the least that a call to a Durable Object can cost, a POST with a JSON body, parsed, one RPC to an
 * object by name, a JSON answer. Durable: the least that an answer with something kept behind it can cost, two SQLite
 * transactions of three rows and two SHA-256 on top. No identity, no policy, no evidence. Served beside Belay, in the same workerd.
 */

import { DurableObject } from "cloudflare:workers";
import { createHash } from "node:crypto";

/** A row is small, so that what is measured is the commit and not the writing. */
const ROW = "x".repeat(200);

export class BareObject extends DurableObject {
	#rows = 0;

	echo(value: unknown): { value: unknown } {
		return { value };
	}

	async keep(value: unknown): Promise<{ value: unknown; digest: string }> {
		this.#write();
		await Promise.resolve();
		return { value, digest: this.#write() };
	}

	#write(): string {
		const { sql } = this.ctx.storage;
		// A new life of the object goes on behind the rows of the last one.
		if (this.#rows === 0) {
			sql.exec("CREATE TABLE IF NOT EXISTS step (n INTEGER PRIMARY KEY, doc TEXT)");
			this.#rows = Number(sql.exec("SELECT coalesce(max(n), 0) AS n FROM step").one().n);
		}
		const digest = createHash("sha256").update(`${ROW}${this.#rows}`).digest("hex");
		this.ctx.storage.transactionSync(() => {
			for (let n = 0; n < 3; n++) sql.exec("INSERT INTO step VALUES (?, ?)", ++this.#rows, ROW + digest);
		});
		return digest;
	}
}

type BareStub = {
	echo(value: unknown): Promise<{ value: unknown }>;
	keep(value: unknown): Promise<{ value: unknown; digest: string }>;
};

export default {
	async fetch(request: Request, env: { BARE: DurableObjectNamespace }): Promise<Response> {
		const name = new URL(request.url).pathname;
		const object = env.BARE.getByName(name) as unknown as BareStub;
		const body = await request.json();
		return Response.json(await (name.startsWith("/durable") ? object.keep(body) : object.echo(body)));
	},
};
