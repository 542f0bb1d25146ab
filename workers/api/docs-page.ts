/**
 * `/docs`: the API as one page, made from the route table like the OpenAPI document; no script, nothing from elsewhere.
 * Called once per isolate.
 */
import { html, raw } from "hono/html";
import type { RouteEntry } from "./noun.ts";
import { accessText } from "./openapi.ts";
import { PROBLEMS } from "./problem.ts";

const STYLE = `:root{color-scheme:light dark}body{font:16px/1.55 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{margin-bottom:.25rem}h2{margin-top:2.25rem}table{width:100%;border-collapse:collapse}td,th{text-align:left;vertical-align:top;padding:.45rem .75rem .45rem 0;border-bottom:1px solid #8884}
code{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:.9em;overflow-wrap:anywhere}.method{font-weight:700}.soft{opacity:.75;font-size:.9em}pre{padding:1rem;border:1px solid #8884;border-radius:8px;overflow:auto}`;

export function docsPage(routes: readonly RouteEntry[]): string {
	const tags = [...new Set(routes.map((route) => route.tag))];
	const sections = tags.map(
		(tag) => html`<h2 id="${tag.toLowerCase().replaceAll(" ", "-")}">${tag}</h2>
			<table><tbody>${routes.filter((route) => route.tag === tag).map(row)}</tbody></table>`,
	);
	const problems = Object.entries(PROBLEMS).map(
		([code, [status, title]]) =>
			html`<tr id="problem-${code}"><td><code>${code}</code></td><td>${status}</td><td>${prose(title)}</td></tr>`,
	);
	return String(html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Belay API</title>
<style>${raw(STYLE)}</style></head><body>
<h1>Belay API</h1>
<p>A model proposes; Belay decides, asks a human where that is due, executes, and hands back evidence. The same contract as
<a href="/openapi.json">OpenAPI 3.1</a>.</p>
<pre><code>curl -H "authorization: Bearer $KEY" -H "content-type: application/json" \\
  -d '{"goal": "…", "planner": {"kind": "external"}}' https://this-host/v1/runs</code></pre>
${sections}
<h2 id="problems">Problems</h2>
<p>Errors are <code>application/problem+json</code> (RFC 9457). Branch on <code>code</code>; quote <code>trace_id</code> when you report one.</p>
<table><tbody>${problems}</tbody></table>
</body></html>`);
}

function row(route: RouteEntry) {
	return html`<tr><td><span class="method">${route.method}</span> <code>${route.path}</code></td>
		<td>${prose(route.summary)}<br><span class="soft">${prose(accessText(route.access))}</span></td></tr>`;
}

/** What stands between backticks is code. */
function prose(text: string) {
	return text.split("`").map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : part));
}
