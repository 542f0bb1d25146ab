/** `node ops/seed/write-demo-dataset.ts`: writes the demonstration data set anew, for wrangler to apply. */
import { writeFileSync } from "node:fs";
import { demoDatasetSql } from "./demo-dataset.ts";

writeFileSync(new URL("../demo-dataset/0000_demo.sql", import.meta.url), demoDatasetSql());
