import { describe, expect, it } from "vitest";
import { judgePath } from "./path-guard.ts";

describe("judgePath", () => {
	it.each([
		"a.txt",
		"a/b/c.txt",
		"a..b.txt",
		"résumé.pdf",
		"a/../b.txt",
		"./a",
		"a/./b",
		"...a",
		"报告/2026.pdf",
		"100%.txt",
		"a%20b.txt",
		"",
		".hidden",
		"a;b.txt",
		"C++/x",
		"50% off/..x",
	])("accepts %j", (path) => {
		expect(judgePath(path)).toEqual({ ok: true });
	});
	it.each([
		"..",
		"../x",
		"a/../../x",
		"/etc/passwd",
		"\\\\host\\share",
		"..\\x",
		"a\\..\\..\\x",
		"C:\\x",
		"c:/x",
		"~/.ssh",
		"file:///etc/passwd",
		"a\0.txt",
		"a\n",
		"%2e%2e/x",
		"%2e%2e%2fx",
		"..%2fx",
		"..%5cx",
		"%252e%252e%252fx",
		"%25252e%25252e%25252fx",
		"..%c0%afx",
		"%c0%ae%c0%ae/x",
		"..%e0%80%afx",
		"..%u2215x",
		"..\u2215x",
		"..\uff0fx",
		"\uff0e\uff0e/x",
		"..;/x",
		".. /x",
		"..;a=b/x",
		"%00",
		"&#46;&#46;/x",
		"..%255cx",
		"a/b/../../../x",
		"....//....//..//..//../x/../../../../../x",
		"%2fetc/passwd",
		"\u2025/x",
	])("refuses %j", (path) => {
		expect(judgePath(path).ok).toBe(false);
	});
	it("ends on text that is encoded for ever, in time", () => {
		const start = performance.now();
		expect(judgePath(`%${"25".repeat(50_000)}2e`).ok).toBe(false);
		expect(performance.now() - start).toBeLessThan(500);
	});
});
