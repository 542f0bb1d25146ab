/**
 * The world that a killed instance acts on: a server on loopback that keeps every request it got, with the idempotency key
 * it came with. Some answers are slow and some are faults, so that a kill finds calls under way, in back-off and waiting.
 * What it did it did, whoever is alive to hear of it.
 */
import { createServer, type Server } from "node:http";

export type Received = { readonly path: string; readonly id: string; readonly key: string | null };

const ANSWER_MS: Readonly<Record<string, number>> = { "/slow": 900, "/flaky": 30 };

export class KillUpstream {
	readonly received: Received[] = [];
	readonly #server: Server;

	private constructor(server: Server) {
		this.#server = server;
	}

	static async open(): Promise<KillUpstream> {
		const server = createServer();
		const upstream = new KillUpstream(server);
		server.on("request", (request, response) => {
			const url = new URL(request.url ?? "/", "http://upstream");
			let body = "";
			request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
			request.on("end", () => {
				const id = String((JSON.parse(body === "" ? "{}" : body) as { id?: unknown }).id ?? url.searchParams.get("id"));
				const key = request.headers["idempotency-key"];
				const first = !upstream.received.some((one) => one.id === id);
				upstream.received.push({ path: url.pathname, id, key: typeof key === "string" ? key : null });
				// One in three: more would open the breaker, whose refusals are another test's business.
				const flakes = url.pathname === "/flaky" && first && upstream.received.length % 3 === 0;
				const status = flakes ? 503 : 200;
				setTimeout(() => {
					response.statusCode = status;
					response.setHeader("content-type", "application/json").end(JSON.stringify({ id }));
				}, ANSWER_MS[url.pathname] ?? 0);
			});
		});
		await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
		return upstream;
	}

	get address(): string {
		return `127.0.0.1:${(this.#server.address() as { port: number }).port}`;
	}

	of(id: string): Received[] {
		return this.received.filter((one) => one.id === id);
	}

	close(): void {
		this.#server.closeAllConnections();
		this.#server.close();
	}
}
