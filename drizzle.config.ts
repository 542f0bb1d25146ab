/** `npm run db:generate`: turns changes of the schema into the next file of `migrations/`; needs no database. */
import { defineConfig } from "drizzle-kit";

export default defineConfig({ dialect: "sqlite", schema: "./adapters/d1/schema.ts", out: "./migrations" });
