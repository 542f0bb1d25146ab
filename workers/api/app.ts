/** The API, composed: middleware in order, then every noun. Exports the route table beside the app, for documents and tests. */
import { Hono } from "hono";
import type { AppEnv } from "./env.ts";
import { framed } from "./middleware/framed.ts";
import { methodGuard } from "./middleware/method-guard.ts";
import { onError } from "./middleware/problem.ts";
import type { RouteEntry } from "./noun.ts";
import { pages } from "./pages/routes.tsx";
import { approvals } from "./routes/approvals.ts";
import { artifacts } from "./routes/artifacts.ts";
import { audit } from "./routes/audit.ts";
import { channels } from "./routes/channels.ts";
import { chat } from "./routes/chat-completions.ts";
import { halts } from "./routes/halts.ts";
import { keys } from "./routes/keys.ts";
import { roleBindings, roles } from "./routes/roles.ts";
import { runs } from "./routes/runs.ts";
import { secrets } from "./routes/secrets.ts";
import { service } from "./routes/service.ts";
import { tools } from "./routes/tools.ts";

const nouns = [
	runs,
	chat,
	approvals,
	artifacts,
	tools,
	secrets,
	channels,
	keys,
	roles,
	roleBindings,
	halts,
	audit,
	pages,
	service(() => routes),
];

/** Every route there is. */
export const routes: readonly RouteEntry[] = nouns.flatMap((one) => one.routes);

export const app = new Hono<AppEnv>();

// no CORS: a browser page of another origin has no business with an API key
app.use(framed);
for (const one of nouns) app.route(one.prefix, one.app);
app.notFound(methodGuard(routes));
app.onError(onError);
