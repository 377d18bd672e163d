import type { PriceTable } from "@signalbox/client";
import { expect, it } from "vitest";
import { type OwnPrice, partsOf, partText, pricesOf, withEditedPrice, withoutPrice } from "./price-rows.ts";

const add = (table: PriceTable, row: OwnPrice) => withEditedPrice(table, null, row);
const small = { provider: "openai", model: "small", price: { in: 1, out: 2 } };
const rest = { provider: "openai", model: "*", price: { in: 3, out: 4, cached: 0.1 } };
const own = { provider: "custom-a", model: "*", price: { in: 0, out: 0 } };

it("sets and removes prices without touching the others", () => {
  const table = [small, rest, own].reduce(add, {});
  expect(pricesOf(table)).toEqual([small, rest, own]);
  expect(pricesOf(withoutPrice(table, rest))).toEqual([small, own]);
  expect(withoutPrice(table, own)).toEqual([small, rest].reduce(add, {}));
  expect(withoutPrice(table, { provider: "groq", model: "*" })).toEqual(table);
  const dearer = { ...small, price: { in: 5, out: 6 } };
  expect(pricesOf(withEditedPrice(table, small, dearer))).toEqual([dearer, rest, own]);
});

it("an edit keeps the parts of a price that another client has changed", () => {
  const table = add({}, { ...small, price: { in: 1, out: 9, tiers: { flex: 0.5 } } });
  const edited = { ...small, price: { in: 5, out: 2 } };
  expect(pricesOf(withEditedPrice(table, small, edited))).toEqual([
    { ...small, price: { in: 5, out: 9, tiers: { flex: 0.5 } } },
  ]);
  expect(() => withEditedPrice({}, small, edited)).toThrow(/removed/);
});

it("shows factors of tiers by their names", () => {
  expect(partsOf({ in: 1, out: 2, tiers: { flex: 0.5, priority: 2 } })).toEqual([
    ["in", "1"],
    ["out", "2"],
    ["flex", "× 0.5"],
    ["priority", "× 2"],
  ]);
});

it("names the parts of list prices in words, with their unit", () => {
  expect(partText("web_searches_kcount", "10")).toBe("web searches $10 per 1,000");
  expect(partText("input_audio_mtok", "0.3")).toBe("input audio $0.3 per 1M");
  expect(partText("flex", "× 0.5")).toBe("flex × 0.5");
  expect(partText("input_mtok", '{"base":1}')).toBe('input {"base":1}');
  expect(partText("cacheWrite1h", "6")).toBe("cacheWrite1h 6");
});
