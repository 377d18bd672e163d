import { expect, it } from "vitest";
import { pricesOf, withoutPrice, withPrice } from "./price-rows.ts";

const small = { provider: "openai", model: "small", price: { in: 1, out: 2 } };
const rest = { provider: "openai", model: "*", price: { in: 3, out: 4, cached: 0.1 } };
const own = { provider: "custom-a", model: "*", price: { in: 0, out: 0 } };

it("sets and removes prices without touching the others", () => {
  const table = [small, rest, own].reduce(withPrice, {});
  expect(pricesOf(table)).toEqual([small, rest, own]);
  expect(pricesOf(withoutPrice(table, rest))).toEqual([small, own]);
  expect(withoutPrice(table, own)).toEqual([small, rest].reduce(withPrice, {}));
  expect(withoutPrice(table, { provider: "groq", model: "*" })).toEqual(table);
  const dearer = { ...small, price: { in: 5, out: 6 } };
  expect(pricesOf(withPrice(table, dearer))).toEqual([dearer, rest, own]);
});
