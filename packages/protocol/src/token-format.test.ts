import fc from "fast-check";
import { expect, it } from "vitest";
import { generateToken, isTokenShaped, tokenSuffix } from "./token-format.ts";

it("generates unique tokens of the documented format", () => {
  const tokens = new Set(Array.from({ length: 1000 }, generateToken));
  expect(tokens.size).toBe(1000);
  for (const token of tokens) {
    expect(token).toMatch(/^sbx_[0-9A-Za-z]{46}$/);
    expect(isTokenShaped(token)).toBe(true);
  }
});

it("detects every single mistyped character", () => {
  const token = generateToken();
  for (let i = 0; i < token.length; i++) {
    const replacement = token[i] === "a" ? "b" : "a";
    expect(isTokenShaped(token.slice(0, i) + replacement + token.slice(i + 1))).toBe(false);
  }
});

it("rejects other text", () => {
  fc.assert(fc.property(fc.string(), (text) => !isTokenShaped(text)));
  for (const text of [
    "",
    "sbx_",
    `${generateToken()}x`,
    ` ${generateToken()}`,
    generateToken().toUpperCase(),
  ]) {
    expect(isTokenShaped(text)).toBe(false);
  }
});

it("returns the last four characters", () => {
  expect(tokenSuffix("sbx_0123456789")).toBe("6789");
});
