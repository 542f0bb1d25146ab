/**
 * Tells from a field's name what its value is (E3): a secret, masked whole, or a personal identifier, masked to its ends.
 * One list for JSON members, `key=value` pairs in text, headers, columns and SQL, in English and Chinese. Looks at names
 * only. Called by the other mask files.
 */
export type FieldClass = "secret" | "secret_text" | "identifier";

/** Words that make a name secret wherever they stand in it: `userPassword`, `client_secret`, `x-auth-token`. */
const SECRET_WORDS = new Set(
	(
		"password passwords passwd pwd passphrase passcode pass secret secrets credential credentials authorization cookie cookies " +
		"otp totp pin cvv cvc cvv2 csrf xsrf jwt bearer apikey apikeys accesskey secretkey privatekey seed mnemonic"
	).split(" "),
);
/** Secret as text; as numbers these count or describe (`prompt_tokens: 12`, `session: 3`). */
const SECRET_TEXT_WORDS = new Set("token tokens signature sig auth accesstoken refreshtoken".split(" "));
/** `api_key`, `signingKey`: a key is a secret only with one of these before it. */
const KEY_KINDS = new Set(
	"api access secret private signing sign encryption encrypt master auth ssh storage account shared service client server app license webhook hmac aes rsa subscription".split(
		" ",
	),
);
const IDENTIFIER_WORDS = new Set(
	(
		"phone phones mobile mobiles tel telephone cellphone cell fax msisdn phonenumber mobilephone idcard idcards idno idnumber nationalid " +
		"ssn passport cardnumber cardno bankcard creditcard debitcard pan iban accountnumber accountno bankaccount imei taxid"
	).split(" "),
);
/** Two words that are one of the above: `id_card`, `cardNumber`, `bank account`. */
const IDENTIFIER_PAIRS = new Set(
	(
		"id_card id_cards id_no id_number identity_card identity_number national_id card_number card_no bank_card credit_card debit_card account_number account_no " +
		"bank_account passport_no social_security tax_id citizen_id"
	).split(" "),
);

export const SECRET_CHINESE = [
	"密码",
	"口令",
	"密钥",
	"秘钥",
	"令牌",
	"验证码",
	"校验码",
	"私钥",
	"凭证",
	"凭据",
	"安全码",
] as const;
export const IDENTIFIER_CHINESE = [
	"手机",
	"电话",
	"身份证",
	"银行卡",
	"信用卡",
	"卡号",
	"护照",
	"账号",
	"帐号",
	"社保号",
] as const;

/** Member names that were looked at: tools and their arguments have few, and they come again with every call. */
const seen = new Map<string, FieldClass | undefined>();
const SEEN_MAX_NAMES = 2_000;
const SEEN_MAX_CHARS = 64;

/** `classifyName` of a member's name as JSON.parse made it. A piece of a text is not for here: it would keep the text in memory. */
export function classifyMember(name: string): FieldClass | undefined {
	if (name.length > SEEN_MAX_CHARS) return classifyName(name);
	if (seen.has(name)) return seen.get(name);
	const found = classifyName(name);
	if (seen.size >= SEEN_MAX_NAMES) seen.clear();
	seen.set(name, found);
	return found;
}

/** What a value under this name is, or undefined where the name says nothing. */
export function classifyName(name: string): FieldClass | undefined {
	const words = wordsOf(name.slice(0, 128));
	const joined = words.join("");
	if (SECRET_CHINESE.some((one) => name.includes(one))) return "secret";
	if (words.some((word) => SECRET_WORDS.has(word)) || SECRET_WORDS.has(joined)) return "secret";
	for (let at = 1; at < words.length; at++) {
		if (/^keys?$/.test(words[at] ?? "") && KEY_KINDS.has(words[at - 1] ?? "")) return "secret";
	}
	if (SECRET_TEXT_WORDS.has(words.at(-1) ?? "") || SECRET_TEXT_WORDS.has(joined)) return "secret_text";
	if (IDENTIFIER_CHINESE.some((one) => name.includes(one))) return "identifier";
	if (words.some((word) => IDENTIFIER_WORDS.has(word)) || IDENTIFIER_WORDS.has(joined)) return "identifier";
	for (let at = 1; at < words.length; at++)
		if (IDENTIFIER_PAIRS.has(`${words[at - 1]}_${words[at]}`)) return "identifier";
	return undefined;
}

/** `userApiKey`, `X-API-Key`, `user_api_key` -> [`user`, `api`, `key`]; trailing digits are dropped (`phone2`). */
function wordsOf(name: string): string[] {
	return name
		.replace(/([a-z0-9])([A-Z])/g, "$1 $2")
		.replace(/([A-Z])([A-Z][a-z])/g, "$1 $2")
		.toLowerCase()
		.split(/[^\p{L}\p{N}]+/u)
		.map((word) => (/^\p{N}+$/u.test(word) || word === "cvv2" ? word : word.replace(/\p{N}+$/u, "")))
		.filter((word) => word !== "");
}
