import type { ModelInfo, Provider } from "@pydantic/genai-prices";
import { describe, expect, it } from "vitest";
import { mergePriceLists, parsePriceList } from "./price-list.ts";
import { presentPriceList } from "./prices-package.ts";

const model = (id: string, prices: ModelInfo["prices"]): ModelInfo => ({ id, match: { equals: id }, prices });
const provider = (id: string, ...models: ModelInfo[]): Provider => ({
  id,
  name: id,
  api_pattern: id,
  models,
});
const merge = (before: ModelInfo["prices"], next: ModelInfo["prices"]) =>
  mergePriceLists([provider("p", model("m", before))], [provider("p", model("m", next))]);

describe("a newer price list", () => {
  it.each([
    ["a little higher", { input_mtok: 1 }, { input_mtok: 3 }],
    ["a little lower", { input_mtok: 3 }, { input_mtok: 1 }],
    ["with another rate", { input_mtok: 1 }, { input_mtok: 1, output_mtok: 2 }],
    ["no longer free", { input_mtok: 0 }, { input_mtok: 9 }],
    ["with tiers", { input_mtok: 1 }, { input_mtok: { base: 2, tiers: [{ start: 200_000, price: 4 }] } }],
  ] as const)("changes a price that is %s", (_, before, next) => {
    const { providers, held } = merge(before, next as ModelInfo["prices"]);
    expect(held).toEqual([]);
    expect(providers[0]?.models[0]?.prices).toEqual(next);
  });

  it.each([
    ["far higher", { input_mtok: 1 }, { input_mtok: 3.1 }],
    ["far lower", { input_mtok: 3.1 }, { input_mtok: 1 }],
    ["free", { input_mtok: 1 }, { input_mtok: 0 }],
    ["unknown", { input_mtok: 1, output_mtok: 2 }, { input_mtok: 1 }],
    ["far higher at some time", { input_mtok: 1 }, [{ prices: { input_mtok: 4 } }]],
    [
      "far higher in a tier",
      { input_mtok: { base: 1, tiers: [{ start: 1, price: 2 }] } },
      { input_mtok: { base: 1, tiers: [{ start: 1, price: 7 }] } },
    ],
  ] as const)("holds a price that becomes %s", (_, before, next) => {
    const { providers, held } = merge(before as ModelInfo["prices"], next as ModelInfo["prices"]);
    expect(providers[0]?.models[0]?.prices).toEqual(before);
    expect(held).toEqual([{ provider: "p", model: "m", from: before, to: next }]);
  });

  it("adds models and providers, and loses none", () => {
    const before = [
      provider("p", model("old", { input_mtok: 1 })),
      provider("q", model("x", { input_mtok: 1 })),
    ];
    const { providers } = mergePriceLists(before, [
      provider("p", model("new", { input_mtok: 1 })),
      provider("r", model("y", { input_mtok: 1 })),
    ]);
    expect(providers.map(({ id, models }) => [id, models.map((one) => one.id)])).toEqual([
      ["p", ["new", "old"]],
      ["r", ["y"]],
      ["q", ["x"]],
    ]);
  });
});

describe("a text that is read", () => {
  const text = (one: unknown) => JSON.stringify([{ id: "p", api_pattern: "p", models: [one] }]);

  it("is the list of the package itself", async () => {
    const own = await presentPriceList();
    expect(parsePriceList(JSON.stringify(own))).toHaveLength(own.length);
  });

  it.each([
    ["no JSON", "<html>"],
    ["an empty list", "[]"],
    ["a negative price", text(model("m", { input_mtok: -1 }))],
    ["a price that is no number", text({ ...model("m", {}), prices: { input_mtok: "1" } })],
    ["a model that matches nothing known", text({ id: "m", match: { like: "m" }, prices: {} })],
    ["a pattern that may take long", text({ id: "m", match: { regex: "(a+)+$" }, prices: {} })],
  ])("is refused if it is %s", (_, json) => {
    expect(() => parsePriceList(json)).toThrow();
  });
});
