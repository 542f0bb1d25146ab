/**
 * The demonstration data set as SQL: products, sales by month and region, and reports for full-text search. Everything in
 * it is made up and the same at every run. The reports say why product A did better than product B in the third quarter
 * of 2026; by how much is for the caller to compute, so no report states it. Written to `ops/demo-dataset/` by
 * `write-demo-dataset.ts`, which wrangler applies like any migration.
 */
import { indexTerms } from "#adapters/fulltext/terms.ts";
import { DEMO_REPORTS } from "./demo-reports.ts";

type Product = {
	id: string;
	name: string;
	category: string;
	launched_on: string;
	price_cents: number;
	units: number;
	specs: object;
};

const PRODUCTS: readonly Product[] = [
	{
		id: "A",
		name: "Product A",
		category: "speaker",
		launched_on: "2023-03-14",
		price_cents: 12_900,
		units: 210,
		specs: { battery_hours: 18, weight_g: 560, waterproof: "IP67", bluetooth: "5.3", warranty_months: 24 },
	},
	{
		id: "B",
		name: "Product B",
		category: "speaker",
		launched_on: "2023-09-05",
		price_cents: 13_900,
		units: 205,
		specs: { battery_hours: 24, weight_g: 690, waterproof: "IPX5", bluetooth: "5.2", warranty_months: 24 },
	},
	{
		id: "C",
		name: "Product C",
		category: "headphones",
		launched_on: "2024-02-20",
		price_cents: 19_900,
		units: 120,
		specs: { battery_hours: 35, weight_g: 255, noise_cancelling: true, bluetooth: "5.3", warranty_months: 24 },
	},
	{
		id: "D",
		name: "Product D",
		category: "headphones",
		launched_on: "2022-10-11",
		price_cents: 8_900,
		units: 160,
		specs: { battery_hours: 22, weight_g: 210, noise_cancelling: false, bluetooth: "5.0", warranty_months: 12 },
	},
	{
		id: "E",
		name: "Product E",
		category: "soundbar",
		launched_on: "2024-06-03",
		price_cents: 24_900,
		units: 70,
		specs: { channels: "3.1", weight_g: 3_400, hdmi: "eARC", bluetooth: "5.3", warranty_months: 36 },
	},
];
const REGIONS = [
	["North", 1.0],
	["East", 1.25],
	["South", 0.9],
	["West", 0.75],
] as const;
/** October 2024 to November 2026: eight whole quarters and the beginning of a ninth. */
const FIRST_MONTH = 2024 * 12 + 9;
const MONTHS = 26;
/** January to December: presents in November and December, a lull after. */
const SEASON = [0.85, 0.84, 0.93, 0.96, 1.0, 1.02, 1.0, 1.04, 1.03, 1.0, 1.22, 1.41];

/** What happened, as the reports tell it: a factor on a product's units in a month. */
function events(product: string, month: string): number {
	if (product === "A" && month >= "2026-07" && month <= "2026-09") return 1.34;
	if (product === "B" && (month === "2026-07" || month === "2026-08")) return 0.66;
	if (product === "B" && month === "2026-09") return 0.88;
	if (product === "D" && month >= "2026-05") return 0.9;
	return 1;
}

/** The whole file. Deterministic: the noise comes from a small generator with a fixed seed. */
export function demoDatasetSql(): string {
	return `${[SCHEMA, ...inserts("products", productRows()), ...inserts("sales", salesRows()), ...inserts("fts_reports", reportRows())].join("\n")}\n`;
}

const SCHEMA = `-- Made by ops/seed/write-demo-dataset.ts: change that, not this.
CREATE TABLE products (product_id TEXT PRIMARY KEY, name TEXT NOT NULL, category TEXT NOT NULL, launched_on TEXT NOT NULL, price_cents INTEGER NOT NULL, specs TEXT NOT NULL);
CREATE TABLE sales (sale_id INTEGER PRIMARY KEY, product TEXT NOT NULL REFERENCES products (product_id), region TEXT NOT NULL, sold_on TEXT NOT NULL, quarter TEXT NOT NULL, units INTEGER NOT NULL, revenue_cents INTEGER NOT NULL);
CREATE INDEX sales_by_quarter ON sales (quarter, product);
CREATE VIRTUAL TABLE fts_reports USING fts5(id UNINDEXED, title UNINDEXED, text UNINDEXED, metadata UNINDEXED, title_terms, text_terms, tokenize = 'porter unicode61 remove_diacritics 2');`;

type Cell = string | number;

function productRows(): Cell[][] {
	return PRODUCTS.map((p) => [p.id, p.name, p.category, p.launched_on, p.price_cents, JSON.stringify(p.specs)]);
}

function salesRows(): Cell[][] {
	const noise = generator(20_261_130);
	const rows: Cell[][] = [];
	for (let n = 0; n < MONTHS; n++) {
		const index = FIRST_MONTH + n;
		const year = Math.floor(index / 12);
		const month = `${year}-${String((index % 12) + 1).padStart(2, "0")}`;
		const quarter = `${year}-Q${Math.floor((index % 12) / 3) + 1}`;
		for (const product of PRODUCTS)
			for (const [region, share] of REGIONS) {
				const trend = (SEASON[index % 12] ?? 1) * (1 + n * 0.004) * events(product.id, month);
				const units = Math.round(product.units * share * trend * (0.94 + noise() * 0.12));
				// A few per cent go in rebates, so that revenue is not simply units times price.
				const revenue = Math.round(units * product.price_cents * (0.95 + noise() * 0.05));
				rows.push([rows.length + 1, product.id, region, `${month}-15`, quarter, units, revenue]);
			}
	}
	return rows;
}

function reportRows(): Cell[][] {
	return DEMO_REPORTS.map((r) => [
		r.id,
		r.title,
		r.text,
		JSON.stringify(r.metadata),
		indexTerms(r.title),
		indexTerms(r.text),
	]);
}

/** Statements of at most 100 rows: D1 takes 100 KB a statement. */
function inserts(table: string, rows: Cell[][]): string[] {
	const statements: string[] = [];
	for (let from = 0; from < rows.length; from += 100) {
		const values = rows.slice(from, from + 100).map((row) => `(${row.map(literal).join(", ")})`);
		statements.push(`INSERT INTO ${table} VALUES\n${values.join(",\n")};`);
	}
	return statements;
}

function literal(cell: Cell): string {
	return typeof cell === "number" ? String(cell) : `'${cell.replaceAll("'", "''")}'`;
}

/** Numerical Recipes' linear congruential generator: 0 <= x < 1. */
function generator(seed: number): () => number {
	let state = seed >>> 0;
	return () => {
		state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
		return state / 2 ** 32;
	};
}
