import { expect, it } from "vitest";
import { matchItems } from "./match-items.ts";

const item = (title: string, kind: string, words?: string) => ({
  id: title,
  title,
  kind,
  ...(words === undefined ? {} : { words }),
});
const ITEMS = [
  item("Usage", "Page", "analytics cost"),
  item("my-tokens", "Gateway"),
  item("Tokens", "Page", "api keys"),
  item("Create token", "Action"),
];
const titles = (text: string) => matchItems(ITEMS, text).map(({ title }) => title);

it("shows everything without a text, in the given order", () => {
  expect(titles(" ")).toEqual(["Usage", "my-tokens", "Tokens", "Create token"]);
});

it("finds by title, kind and other words, and puts titles that start with the text first", () => {
  expect(titles("tok")).toEqual(["Tokens", "my-tokens", "Create token"]);
  expect(titles("COST")).toEqual(["Usage"]);
  expect(titles("gateway tok")).toEqual(["my-tokens"]);
  expect(titles("nothing")).toEqual([]);
});
