import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "../json.ts";
import { maskJson, maskText } from "./mask.ts";
import { classifyName } from "./mask-names.ts";

const deepFreeze = (value: Json): Json => {
	if (typeof value === "object" && value !== null) Object.values(Object.freeze(value)).forEach(deepFreeze);
	return value;
};

describe("names", () => {
	test.each([
		"password",
		"userPassword",
		"PASSWORD",
		"db_pwd",
		"client_secret",
		"X-API-Key",
		"apiKey",
		"apikey",
		"api_key_2",
		"Authorization",
		"Set-Cookie",
		"signingKey",
		"otp",
		"cvv",
		"登录密码",
		"支付口令",
	])("%s is secret", (name) => expect(classifyName(name)).toBe("secret"));
	test.each(["token", "access_token", "refreshToken", "x-auth-token", "signature"])("%s is secret as text", (name) =>
		expect(classifyName(name)).toBe("secret_text"),
	);
	test.each([
		"phone",
		"phoneNumber",
		"mobile_phone",
		"contactTel",
		"id_card",
		"idCard",
		"cardNumber",
		"bank_card",
		"passport",
		"phone2",
		"手机号",
		"身份证号码",
		"银行卡",
	])("%s is an identifier", (name) => expect(classifyName(name)).toBe("identifier"));
	test.each([
		"key",
		"name",
		"keyboard",
		"monkey",
		"passenger",
		"compass",
		"prompt_tokens_total",
		"hotel",
		"telemetry",
		"phonetic",
		"postcard",
		"cancel",
		"id",
		"tool_id",
		"constructor",
		"__proto__",
		"primary_key",
		"cache_key",
		"日期",
	])("%s is neither", (name) => expect(classifyName(name)).toBeUndefined());
});

describe("maskJson (E3)", () => {
	test.each<[Json, Json]>([
		[{ phone: "13812345678" }, { phone: "138****5678" }],
		[{ phone: "138-1234-5678" }, { phone: "138-****-5678" }],
		[{ phone: 13812345678 }, { phone: "138****5678" }],
		[{ id_card: "11010519491231002X" }, { id_card: "110***********002X" }],
		[{ id_card: "12345" }, { id_card: "***" }],
		[{ password: "hunter2-and-more-than-eleven" }, { password: "***" }],
		[
			{ password: 123456, pin: 0 },
			{ password: "***", pin: "***" },
		],
		[
			{ password: null, secret: true, token: "" },
			{ password: null, secret: true, token: "" },
		],
		[
			{ token: "abc", tokens: 12, prompt_tokens: 12 },
			{ token: "***", tokens: 12, prompt_tokens: 12 },
		],
		[{ credentials: { user: "ada", deep: ["x", 1] } }, { credentials: { user: "***", deep: ["***", "***"] } }],
		[{ phones: ["13812345678", "110"] }, { phones: ["138****5678", "***"] }],
		[{ headers: { nested: { api_key: "S" } } }, { headers: { nested: { api_key: "***" } } }],
		[[{ name: "Authorization", value: "Bearer S" }], [{ name: "Authorization", value: "***" }]],
		[
			{
				columns: ["name", "phone", "密码"],
				rows: [
					["Ada", "13812345678", "x"],
					[null, null, null],
				],
			},
			{
				columns: ["name", "phone", "密码"],
				rows: [
					["Ada", "138****5678", "***"],
					[null, null, null],
				],
			},
		],
		[
			{ note: "call 13812345678 or a@b.c", amount: 12.5, at: 1764513668000, ok: true },
			{ note: "call 138****5678 or a@b.c", amount: 12.5, at: 1764513668000, ok: true },
		],
		[
			{ "13812345678": 1, body: '{"password":"x"}' },
			{ "138****5678": 1, body: '{"password":"***"}' },
		],
	])("%j", (value, expected) => expect(maskJson(value)).toEqual(expected));

	test("the input is never changed", () => {
		const value = deepFreeze({ phone: "13812345678", list: [{ password: "x" }] });
		expect(maskJson(value)).toEqual({ phone: "138****5678", list: [{ password: "***" }] });
	});

	test("own properties only; names of the prototype are names like any other", () => {
		const value = JSON.parse(
			'{"__proto__":{"password":"S"},"constructor":"13812345678","name":"toString","value":"v"}',
		) as JsonObject;
		const masked = maskJson(value) as JsonObject;
		expect(JSON.stringify(masked)).toBe(
			'{"__proto__":{"password":"***"},"constructor":"138****5678","name":"toString","value":"v"}',
		);
		expect(Object.getPrototypeOf(masked)).toBe(Object.prototype);
	});

	test("what lies too deep to look at is not shown", () => {
		const deep = JSON.parse(`${'{"a":'.repeat(4_000)}"S3cretS3cret"${"}".repeat(4_000)}`) as Json;
		expect(JSON.stringify(maskJson(deep))).not.toContain("S3cret");
	});

	test("two names that mask alike keep both values", () => {
		expect(maskJson({ "13812345678": 1, "13899995678": 2 })).toEqual({ "138****5678": 1, "138****5678#2": 2 });
	});

	test("ids and hashes that Belay mints stay whole", () => {
		const value = {
			tool_call_id: "call_00112233445566778899aabbccddeeff_13812345678138123456781381234567",
			input_hash: "4111111111111111a2b3c4d5e6f7081213812345678aabbccddeeff001122334",
			run_id: "run_00000000000000000000000013812345",
			trace: "00112233445566778899001122334455",
			at: "2026-11-30T14:41:35.123Z",
			n: 4_102_444_800_000,
		};
		expect(maskJson(value)).toEqual(value);
	});
});

describe("maskText (E3)", () => {
	test.each([
		["call +86 138 1234 5678 now", "call +86 1** **** 5678 now"],
		["手机13812345678，身份证11010519491231002X。", "手机138****5678，身份证110***********002X。"],
		["card 4111 1111 1111 1111 ok", "card 411* **** **** 1111 ok"],
		["order 4111111111111112 ok", "order 4111111111111112 ok"],
		["ring +49 30 901820 99 or (415) 555-2671", "ring +49 3* ****20 99 or ***"],
		["password=hunter2&next=1", "password=***&next=1"],
		["https://api.example.com/v1?api_key=S3&q=1", "https://api.example.com/v1?api_key=***&q=1"],
		["postgres://ada:pw@db.example.com/x", "postgres://***@db.example.com/x"],
		["Authorization: Bearer abcdef.ghi", "Authorization: Bearer ***"],
		["sent Bearer abcdefgh12 to it", "sent Bearer *** to it"],
		['{"user":"ada","password":"a\\"b","n":1}', '{"user":"ada","password":"***","n":1}'],
		['{\\"password\\":\\"S3cret\\"}', '{\\"password\\":\\"***\\"}'],
		['{"password":"C:\\\\","name":"bo"}', '{"password":"***\\\\","name":"bo"}'],
		[
			"SELECT * FROM u WHERE password = 'it''s' AND name = 'bo'",
			"SELECT * FROM u WHERE password = '***' AND name = 'bo'",
		],
		[
			"UPDATE u SET phone='13812345678', pwd = 'x' WHERE id=1",
			"UPDATE u SET phone='138****5678', pwd = '***' WHERE id=1",
		],
		["SELECT 1 WHERE phone LIKE '138%'", "SELECT 1 WHERE phone LIKE '***'"],
		[
			"INSERT INTO users (name, password, phone) VALUES ('bo', 'it''s, me', '13812345678'), ('al', ?, NULL);",
			"INSERT INTO users (name, password, phone) VALUES ('bo', '***', '138****5678'), ('al', ?, NULL);",
		],
		[
			"insert into u(\"api_key\",n) values (concat('a','b'), 3) returning id",
			"insert into u(\"api_key\",n) values ('***', 3) returning id",
		],
		["我的密码是abc123，谢谢", "我的密码是***，谢谢"],
		["密码：hunter2", "密码：***"],
		["my password is hunter2", "my password is ***"],
		["the password is required", "the password is required"],
		["key sk-abcdefghijklmnopqrstuv used", "key *** used"],
		["ghp_abcdefghijklmnopqrstuvwxyz012345", "***"],
		["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "***"],
		["-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nrest", "*** (private key)\nrest"],
		["at position 17 of 3 rows in 0.13812345678 s", "at position 17 of 3 rows in 0.13812345678 s"],
		[
			"HTTP 200 from api.example.com, 3 rows, `sku` is missing",
			"HTTP 200 from api.example.com, 3 rows, `sku` is missing",
		],
	])("%j", (text, expected) => expect(maskText(text)).toBe(expected));

	test.each([
		"a".repeat(200_000),
		"password=".repeat(20_000),
		"1".repeat(100_000),
		"'".repeat(100_000),
		"insert into t (password) values ".repeat(3_000),
		"(".repeat(100_000),
		"+1 ".repeat(60_000),
		"key \\\\\\".repeat(30_000),
		"a:// ".repeat(40_000),
	])("long text %# is masked in time", (text) => expect(maskText(text).length).toBeGreaterThan(0));
});

test("masking what is masked changes nothing, and no secret survives (seeded)", () => {
	let seed = 20_261_130;
	const random = (n: number) => {
		seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
		return Math.floor((seed / 2 ** 32) * n);
	};
	const pick = <T>(list: readonly T[]): T => list[random(list.length)] as T;
	const secret = "S3cr3tS3cr3t";
	const phone = "13812345678";
	const pieces = [
		phone,
		"+86 138 1234 5678",
		"4111-1111-1111-1111",
		"11010519491231002X",
		"password",
		"token",
		"phone",
		"=",
		": ",
		"'",
		'"',
		"\\",
		" ",
		"\n",
		"is",
		"Bearer ",
		"密码",
		"是",
		"***",
		"138****5678",
		"INSERT INTO t (pwd,a) VALUES ('x',",
		")",
		"(",
		",",
		"https://",
		"@",
		"word",
		"42",
		"日",
	];
	const names = ["password", "phone", "name", "value", "columns", "rows", "token", phone, "__proto__", "note", "密码"];
	const build = (depth: number): Json => {
		const kind = random(depth > 3 ? 3 : 5);
		if (kind === 0) return pick([null, true, 7, 13812345678, 4111111111111111, 1.5]);
		if (kind < 3) return Array.from({ length: random(8) }, () => pick(pieces)).join("");
		if (kind === 3) return Array.from({ length: random(4) }, () => build(depth + 1));
		return Object.fromEntries(Array.from({ length: random(5) }, () => [pick(names), build(depth + 1)]));
	};
	for (let n = 0; n < 3_000; n++) {
		const started = seed;
		const value = build(0);
		const once = maskJson(value);
		expect(maskJson(once), `seed ${started}: ${JSON.stringify(value)}`).toEqual(once);
	}
	for (const frame of [
		`password=${secret}`,
		`"token": "${secret}"`,
		`密码：${secret}`,
		`pwd => '${secret}'`,
		`Authorization: Basic ${secret}`,
		`https://u:${secret}@h/`,
		`--password ${secret}`,
	]) {
		for (let n = 0; n < 20; n++)
			expect(maskText(`${pick(["x ", "{", "? ", "\n"])}${frame}${pick([" y", "}", "\n", ";"])}`), frame).not.toContain(
				secret,
			);
	}
});

test("no text that was masked is kept in memory for the names in it", () => {
	setFlagsFromString("--expose-gc");
	const collect = runInNewContext("gc") as () => void;
	const used = (): number => {
		collect();
		return process.memoryUsage().heapUsed;
	};
	const before = used();
	for (let n = 0; n < 300; n++) maskJson({ note: `parameter_number_${n}: 5 ${"x".repeat(100_000)}${n}` });
	expect(used() - before).toBeLessThan(10_000_000);
});
