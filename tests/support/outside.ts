/**
 * The world outside Belay, for tests in workerd: every fetch of the Worker and its Durable Objects that leaves the
 * process ends here (it runs in Node, beside the pool). Unknown hosts are answered 599, so no test reaches a network.
 *
 * `ledger.test`    write and read tools' upstream: records every request. `GET /_log?key=k` lists what arrived under key k,
 *                  the first path segment; `/k/ok`, `/k/slow?ms=`, `/k/status/503`, `/k/redirect?to=URL`, `/k/echo`,
 *                  `/k/flaky/2` (503 twice), `/k/limited/1` (429 once), `/k/happened/yes`; `/k/page` answers the JSON that was
 *                  put there with `POST /_page?key=k&status=`.
 * `planner.test`   an OpenAI-compatible endpoint that replays turns queued with `POST /_script?key=k` (see planner tests).
 */
type Recorded = { method: string; url: string; headers: Record<string, string>; body: string; at: number };

const recorded = new Map<string, Recorded[]>();
const scripts = new Map<string, string[]>();
const pages = new Map<string, { body: string; status: number }>();
const asked: { key: string; body: unknown; headers: Record<string, string> }[] = [];

export async function outside(request: Request): Promise<Response> {
	const url = new URL(request.url);
	if (url.hostname === "ledger.test" || url.hostname.endsWith(".ledger.test")) return ledger(request, url);
	if (url.hostname === "planner.test") return planner(request, url);
	return new Response(`no such host ${url.hostname}`, { status: 599 });
}

async function ledger(request: Request, url: URL): Promise<Response> {
	if (url.pathname === "/_log") return Response.json(recorded.get(url.searchParams.get("key") ?? "") ?? []);
	const [, key = "", action = "ok", detail = ""] = url.pathname.split("/");
	const body = await request.text();
	if (key === "_page") {
		pages.set(url.searchParams.get("key") ?? "", { body, status: Number(url.searchParams.get("status") ?? "200") });
		return Response.json({ kept: true });
	}
	const list = recorded.get(key) ?? [];
	list.push({
		method: request.method,
		url: request.url,
		headers: Object.fromEntries(request.headers),
		body,
		at: Date.now(),
	});
	recorded.set(key, list);
	if (action === "slow") await new Promise((done) => setTimeout(done, Number(url.searchParams.get("ms") ?? "100")));
	const page = pages.get(key);
	if (action === "page" && page !== undefined)
		return new Response(page.body, { status: page.status, headers: { "content-type": "application/json" } });
	if (action === "status") return Response.json({ error: "as asked" }, { status: Number(detail) });
	// Fails so many times, then works; `/limited/n` says 429 with a second to wait.
	if (action === "flaky" && list.length <= Number(detail)) return Response.json({ error: "not yet" }, { status: 503 });
	if (action === "limited" && list.length <= Number(detail))
		return Response.json({ error: "too fast" }, { status: 429, headers: { "retry-after": "1" } });
	if (action === "happened") return Response.json({ happened: detail === "yes", result: { seen: true } });
	if (action === "redirect")
		return new Response(null, { status: 302, headers: { location: url.searchParams.get("to") ?? "/" } });
	if (action === "bigint")
		return new Response('{"id":2512292042121000001}', { headers: { "content-type": "application/json" } });
	if (action === "echo")
		return Response.json({ method: request.method, body, headers: Object.fromEntries(request.headers) });
	return Response.json({ ok: true, n: list.length });
}

/** Scripts are raw SSE bodies, one per turn, keyed by the model name the request carries. */
async function planner(request: Request, url: URL): Promise<Response> {
	if (url.pathname === "/_script") {
		scripts.set(url.searchParams.get("key") ?? "", (await request.json()) as string[]);
		return Response.json({ queued: true });
	}
	if (url.pathname === "/_asked") {
		const key = url.searchParams.get("key");
		return Response.json(asked.filter((one) => key === null || one.key === key));
	}
	const body = (await request.json()) as { model?: string };
	const key = body.model ?? "";
	asked.push({ key, body, headers: Object.fromEntries(request.headers) });
	const next = scripts.get(key)?.shift();
	if (next === undefined)
		return Response.json({ error: { message: "script is empty", type: "invalid_request_error" } }, { status: 400 });
	if (next.startsWith("status:"))
		return Response.json({ error: { message: "as asked" } }, { status: Number(next.slice(7)) });
	return new Response(next, { headers: { "content-type": "text/event-stream" } });
}
