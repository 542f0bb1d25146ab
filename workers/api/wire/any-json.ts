/**
 * JSON that a request carries on unchanged: metadata, context, edited arguments, a settled result. zod's records leave a
 * `__proto__` member out; here it stays, as plain data, so that what was sent is what is shown, hashed and kept.
 */
import * as z from "zod";
import { isJsonObject, type Json, type JsonObject } from "#core/json.ts";

/** Any JSON object, untouched. */
export const jsonObject = z.custom<JsonObject>(isJsonObject, "a JSON object").meta({ type: "object" });
/** Any JSON value, untouched. */
export const jsonValue = z.custom<Json>((value) => value !== undefined, "a JSON value");

/** Any JSON object whose text is at most `maxBytes` long: it is copied into the run and read with it. */
export const smallJsonObject = (maxBytes: number) =>
	jsonObject.refine((value) => new TextEncoder().encode(JSON.stringify(value)).byteLength <= maxBytes, {
		error: `at most ${maxBytes} bytes`,
		params: { issue: "too_large" },
	});
