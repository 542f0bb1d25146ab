/** The Worker that is deployed: the API and the classes that its bindings name. */
export { Executor } from "#adapters/wasm/executor.ts";
export { AgentRun } from "#objects/agent-run/agent-run.ts";
export { TenantControl } from "#objects/tenant-control/tenant-control.ts";
export { ToolGate } from "#objects/tool-gate/tool-gate.ts";

import { app } from "./app.ts";

export default { fetch: app.fetch };
