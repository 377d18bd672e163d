import { expect, it } from "vitest";
import { plainLine, plainText } from "./plain-text.ts";

it("removes terminal control characters and keeps all other text", () => {
  expect(plainText("\u001b]0;title\u0007\u001b[2Jmodel\r")).toBe("]0;title[2Jmodel");
  expect(plainText("a\u009b31mb\u007f\u0000")).toBe("a31mb");
  expect(plainText("user\u202egpj.exe\u2066x\u2069")).toBe("usergpj.exex");
  expect(plainText("two\nlines\tand é 日本 👩‍👩‍👧 שלום")).toBe("two\nlines\tand é 日本 👩‍👩‍👧 שלום");
});

it("replaces line breaks and tabs with spaces", () => {
  expect(plainLine("real\nforged line\tx\u2028y")).toBe("real forged line xy");
});
