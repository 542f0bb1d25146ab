/**
 * Datasets: D1 bindings of their own, each owned by tenants that the deployment names; never the control database
 * (decision 37). Configured by `BELAY_DATASETS`, JSON `[{"name", "binding", "tenants": [id | "*"], "indexes": [name]}]`.
 */
import * as z from "zod";

const dataset = z.strictObject({
	name: z.string(),
	binding: z.string().regex(/^DATASET_[A-Z0-9_]+$/),
	/** `*`: shared with every tenant of the deployment. */
	tenants: z.array(z.string()),
	indexes: z.array(z.string()).default([]),
});

export class Datasets {
	readonly #list: z.infer<typeof dataset>[];
	readonly #bindings: Record<string, unknown>;

	/** Throws on a malformed configuration: a dataset with unclear owners must not be served. */
	constructor(config: string, bindings: Record<string, unknown>) {
		this.#list = config.trim() === "" ? [] : z.array(dataset).parse(JSON.parse(config));
		this.#bindings = bindings;
	}

	/** The database of a dataset, or undefined when the tenant has none of that name. */
	byName(tenant_id: string, name: string): D1Database | undefined {
		return this.#open(this.#list.find((one) => one.name === name && owns(one, tenant_id)));
	}

	/** The database that holds a full-text index of the tenant. */
	byIndex(tenant_id: string, index: string): D1Database | undefined {
		return this.#open(this.#list.find((one) => one.indexes.includes(index) && owns(one, tenant_id)));
	}

	#open(found: z.infer<typeof dataset> | undefined): D1Database | undefined {
		return found === undefined ? undefined : (this.#bindings[found.binding] as D1Database | undefined);
	}
}

const owns = (one: z.infer<typeof dataset>, tenant_id: string): boolean =>
	one.tenants.includes(tenant_id) || one.tenants.includes("*");
