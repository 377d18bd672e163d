import { expect, it } from "vitest";
import { plainLine, plainText } from "./plain-text.ts";

it("takes away what a terminal would act on and leaves everything people write", () => {
  expect(plainText("\u001b]0;title\u0007\u001b[2Jmodel\r")).toBe("]0;title[2Jmodel");
  expect(plainText("a\u009b31mb\u007f\u0000")).toBe("a31mb");
  expect(plainText("user\u202egpj.exe\u2066x\u2069")).toBe("usergpj.exex");
  expect(plainText("two\nlines\tand é 日本 👩‍👩‍👧 שלום")).toBe("two\nlines\tand é 日本 👩‍👩‍👧 שלום");
});

it("puts a cell on one line", () => {
  expect(plainLine("real\nforged line\tx\u2028y")).toBe("real forged line xy");
});
