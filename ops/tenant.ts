/**
 * `npm run tenant -- --name "Acme" --remote`: the first way into a deployment. Keys are made with a key, so the first one
 * comes from here: a tenant, its operator and one API key, written to the control database by `wrangler d1 execute`. The
 * key is shown once; neither the SQL nor the temporary file it is sent in holds it. Makes nothing when anything is refused.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { runTool, WRANGLER } from "./local/bundle.ts";
import { emailFault, type NewTenant, nameFault, newTenant } from "./seed/new-tenant.ts";

const USAGE = `npm run tenant -- --name "Acme" (--remote | --local | --print-sql)
  --name        what the tenant is called
  --email       its owner's address; links of approvals are mailed to registered addresses only
  --remote      write to the deployed database (wrangler.toml, binding DB)
  --local       write to wrangler's local database, as \`wrangler dev\` uses it
  --persist-to  with --local: the folder that database is in
  --print-sql   write nothing; the SQL goes to standard output, the key to standard error`;

function wanted() {
	const { values } = parseArgs({
		options: {
			name: { type: "string" },
			email: { type: "string" },
			remote: { type: "boolean", default: false },
			local: { type: "boolean", default: false },
			"persist-to": { type: "string" },
			"print-sql": { type: "boolean", default: false },
		},
	});
	const { name, email, remote, local, "persist-to": folder, "print-sql": print } = values;
	if (name === undefined) throw new Error("a tenant needs a name: --name");
	const fault = nameFault(name) ?? (email === undefined ? null : emailFault(email));
	if (fault !== null) throw new Error(fault);
	if ([remote, local, print].filter(Boolean).length !== 1)
		throw new Error("say where the tenant is made: exactly one of --remote, --local and --print-sql");
	if (folder !== undefined && !local) throw new Error("--persist-to goes with --local only");
	const place = remote ? ["--remote"] : ["--local", ...(folder === undefined ? [] : ["--persist-to", resolve(folder)])];
	return { name, email: email ?? null, print, place };
}

async function execute(sql: string, place: readonly string[]): Promise<void> {
	const folder = mkdtempSync(join(tmpdir(), "belay-tenant-"));
	try {
		const file = join(folder, "tenant.sql");
		writeFileSync(file, sql, { mode: 0o600 });
		await runTool([WRANGLER, "d1", "execute", "DB", ...place, "--yes", "--file", file]);
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
}

function announce({ tenant_id, principal_id, key }: NewTenant, say: (text: string) => void): void {
	say(`tenant     ${tenant_id}
principal  ${principal_id} (user, role agent_operator)
key        ${key}
The key is shown this once; only its SHA-256 is stored. Further keys: POST /v1/keys.`);
}

function refuse(fault: unknown, more = ""): never {
	console.error(`no tenant was made: ${fault instanceof Error ? fault.message : String(fault)}${more}`);
	process.exit(1);
}

let asked: ReturnType<typeof wanted>;
try {
	asked = wanted();
} catch (fault) {
	refuse(fault, `\n\n${USAGE}`);
}
const made = newTenant({ name: asked.name, email: asked.email, now: new Date().toISOString(), random: randomBytes });
if (asked.print) {
	process.stdout.write(made.sql);
	announce(made, console.error);
} else {
	await execute(made.sql, asked.place).catch((fault: unknown) => {
		const missing = String(fault).includes("no such table");
		refuse(
			fault,
			missing ? "\nApply the migrations first: npx wrangler d1 migrations apply DB, to the same place" : "",
		);
	});
	announce(made, console.log);
}
