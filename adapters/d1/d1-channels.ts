/**
 * Where notices go: e-mail and chat channels of a tenant. `secret` is sealed text and is handed out by `find` only, to
 * the notifier that opens it; lists are without it.
 */
import { and, asc, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import * as z from "zod";
import { readD1, writeD1 } from "./d1-unavailable.ts";
import { channels } from "./schema.ts";

export const CHANNEL_KINDS = ["email", "slack", "feishu", "dingtalk", "wecom", "telegram", "webhook"] as const;
/** Ids begin with `ch_` and names do not, so that no name can stand in for another channel's id. */
export const channel = z.object({
	channel_id: z.string().regex(/^ch_[A-Za-z0-9_-]{1,64}$/),
	kind: z.enum(CHANNEL_KINDS),
	name: z
		.string()
		.regex(
			/^(?!ch_)[a-z][a-z0-9_-]{0,63}$/,
			"lowercase letters, digits, `_` and `-`, a letter first, and no `ch_` in front",
		),
	url: z.string().max(2048).nullable(),
	to: z.string().max(320).nullable(),
	secret: z.string().max(4096).nullable(),
	locale: z.string().max(35).nullable(),
	created_at: z.string(),
});
export type Channel = z.infer<typeof channel>;
export type ChannelView = Omit<Channel, "secret">;

export class D1Channels {
	readonly #db: D1Database;

	constructor(db: D1Database) {
		this.#db = db;
	}

	/** By id or by name; undefined when there is none. */
	async find(tenant_id: string, id_or_name: string): Promise<Channel | undefined> {
		const column = id_or_name.startsWith("ch_") ? channels.channel_id : channels.name;
		const [row] = await readD1("find a channel", () =>
			drizzle(this.#db)
				.select()
				.from(channels)
				.where(and(eq(channels.tenant_id, tenant_id), eq(column, id_or_name))),
		);
		return row && channel.safeParse(row).data;
	}

	/** False when the id or the name is taken; nothing is replaced. */
	async insert(tenant_id: string, one: Channel): Promise<boolean> {
		const rows = await writeD1("make a channel", () =>
			drizzle(this.#db)
				.insert(channels)
				.values({ tenant_id, ...channel.parse(one) })
				.onConflictDoNothing()
				.returning({ id: channels.channel_id }),
		);
		return rows.length > 0;
	}

	async list(tenant_id: string): Promise<ChannelView[]> {
		const rows = await readD1("list channels", () =>
			drizzle(this.#db).select().from(channels).where(eq(channels.tenant_id, tenant_id)).orderBy(asc(channels.name)),
		);
		return rows.flatMap((row) => {
			const parsed = channel.omit({ secret: true }).safeParse(row);
			return parsed.success ? [parsed.data] : [];
		});
	}

	async delete(tenant_id: string, channel_id: string): Promise<boolean> {
		const rows = await writeD1("delete a channel", () =>
			drizzle(this.#db)
				.delete(channels)
				.where(and(eq(channels.tenant_id, tenant_id), eq(channels.channel_id, channel_id)))
				.returning({ id: channels.channel_id }),
		);
		return rows.length > 0;
	}
}
