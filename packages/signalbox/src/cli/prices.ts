/** `signalbox prices …`, `signalbox budgets …` and `signalbox credit …` */
import type { BudgetState, FoundPrice, ModelPrice, PriceList, PriceTable } from "@signalbox/client";
import { spanOf } from "./ago.ts";
import { type Command, type CommandContext, type CommandOption, UsageError } from "./command.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { readSource } from "./read-source.ts";
import { table } from "./table.ts";

const OPTIONS: readonly CommandOption[] = [ACCOUNT_OPTION, ...CLIENT_OPTIONS];
const OWNER_OPTIONS: readonly CommandOption[] = [
  { name: "gateway", value: "ID", summary: "of this gateway" },
  { name: "token-id", value: "ID", summary: "of this token" },
  ...OPTIONS,
];

export const priceCommands: readonly Command[] = [
  {
    words: ["prices", "list"],
    summary: "List the account's own prices, in US dollars per million tokens.",
    options: OPTIONS,
    async run(context) {
      const prices = await (await context.account()).budgets.prices();
      context.print(prices, showPrices);
    },
  },
  {
    words: ["prices", "find"],
    positionals: ["<provider>", "<model>"],
    summary: "Show the price that a call of a model has, and where it comes from.",
    options: OPTIONS,
    async run(context) {
      const [provider = "", model = ""] = context.positionals;
      const found = await (await context.account()).budgets.findPrice(provider, model);
      context.print(found, showFound);
      return found.price === null ? 1 : 0;
    },
  },
  {
    words: ["prices", "missing"],
    summary:
      "List models that were called within 30 days and have no price, and list prices that wait for the operator.",
    options: OPTIONS,
    async run(context) {
      const { list, missing } = await (await context.account()).budgets.priceList();
      context.print({ list, missing }, showMissing);
    },
  },
  {
    words: ["prices", "set"],
    positionals: ["<provider>", "<model>"],
    summary: "Set the account's own price of a model; * is every other model of the provider.",
    options: [
      { name: "in", value: "USD", summary: "per million tokens of input" },
      { name: "out", value: "USD", summary: "per million tokens of output" },
      { name: "cached", value: "USD", summary: "per million tokens of input read from the provider's cache" },
      ...OPTIONS,
    ],
    async run(context) {
      const [provider = "", model = ""] = context.positionals;
      const price: ModelPrice = {
        in: toPrice(context, "in") ?? required("in"),
        out: toPrice(context, "out") ?? required("out"),
        ...(context.option("cached") === undefined ? {} : { cached: toPrice(context, "cached") ?? 0 }),
      };
      const { budgets } = await context.account();
      const prices = await budgets.changePrices((before) => ({
        ...before,
        [provider]: { ...before[provider], [model]: price },
      }));
      context.print(prices, showPrices);
    },
  },
  {
    words: ["prices", "delete"],
    positionals: ["<provider>", "<model>"],
    summary: "Delete the account's own price of a model.",
    options: OPTIONS,
    async run(context) {
      const [provider = "", model = ""] = context.positionals;
      const { budgets } = await context.account();
      const prices = await budgets.changePrices((before) => {
        const models = { ...before[provider] };
        if (!Object.hasOwn(models, model))
          throw new UsageError(`there is no own price of ${provider}/${model}`);
        delete models[model];
        return Object.fromEntries(
          Object.entries({ ...before, [provider]: models }).filter(([, one]) => Object.keys(one).length > 0),
        );
      });
      context.print(prices, showPrices);
    },
  },
  {
    words: ["prices", "import"],
    positionals: ["<file-or-url>"],
    summary:
      "Replace the account's own prices by those of a JSON file or an https URL: a table of this service, or the public map of model prices.",
    options: [
      { name: "merge", summary: "keep own prices of models that the list does not have" },
      {
        name: "provider",
        value: "SLUG",
        summary: "take the prices of this provider only (repeatable)",
        isRepeatable: true,
      },
      { name: "dry-run", summary: "show the prices, and change nothing" },
      ...OPTIONS,
    ],
    async run(context) {
      const { readPrices } = await import("./public-prices.ts");
      // Read and checked as a whole before anything is written, and written in one request.
      const read = readPrices(await readSource(context, context.positionals[0] ?? ""));
      const wanted = context.options("provider");
      const prices = Object.fromEntries(
        Object.entries(read.prices).filter(([slug]) => wanted.length === 0 || wanted.includes(slug)),
      );
      if (Object.keys(prices).length === 0) throw new UsageError("the list has no price that can be used");
      for (const [reason, count] of Object.entries(read.leftOut)) {
        context.err.write(`${count} models left out: ${reason}\n`);
      }
      const change = (before: PriceTable) => (context.hasSwitch("merge") ? merged(before, prices) : prices);
      const { budgets } = await context.account();
      const result = context.hasSwitch("dry-run")
        ? change(await budgets.prices())
        : await budgets.changePrices(change);
      context.print(result, showPrices);
    },
  },
  {
    words: ["budgets", "show"],
    summary: "Show what is left of the limits of the account, a gateway or a token.",
    options: OWNER_OPTIONS,
    async run(context) {
      const { budgets } = await context.account();
      const of = { gatewayId: context.option("gateway"), tokenId: context.option("token-id") };
      context.print(await budgets.state(of), showBudgets);
    },
  },
  {
    words: ["credit", "add"],
    positionals: ["<dollars>"],
    summary: "Add prepaid credit to a limit without a window.",
    options: [
      { name: "rule", value: "ID", summary: "the limit, if there are several without a window" },
      ...OWNER_OPTIONS,
    ],
    async run(context) {
      const amount = Number(context.positionals[0]);
      if (!(amount > 0)) throw new UsageError("<dollars> must be a positive number");
      const { budgets } = await context.account();
      const of = {
        gatewayId: context.option("gateway"),
        tokenId: context.option("token-id"),
        rule: context.option("rule"),
      };
      context.print(
        await budgets.addCredit(amount, of),
        ({ rule, limit }) => `${rule}: $${limit} in total\n`,
      );
    },
  },
];

function toPrice(context: CommandContext, option: string): number | null {
  const text = context.option(option);
  if (text === undefined) return null;
  const price = Number(text);
  if (text.trim() === "" || !(price >= 0)) throw new UsageError(`--${option} must be a price in US dollars`);
  return price;
}

function required(option: string): never {
  throw new UsageError(`--${option} is required`);
}

function merged(before: PriceTable, prices: PriceTable): PriceTable {
  const changed = Object.entries(prices).map(([slug, models]) => [slug, { ...before[slug], ...models }]);
  return { ...before, ...(Object.fromEntries(changed) as PriceTable) };
}

function showPrices(prices: PriceTable): string {
  const rows = Object.entries(prices).flatMap(([provider, models]) =>
    Object.entries(models).map(([model, price]) => [
      provider,
      model,
      String(price.in),
      String(price.out),
      price.cached === undefined ? "" : String(price.cached),
    ]),
  );
  return table(["provider", "model", "in", "out", "cached"], rows, "no own prices");
}

function showFound({ provider, model, source, price }: FoundPrice): string {
  if (price === null) return `the price of ${provider}/${model} is unknown\n`;
  const rows = Object.entries(price).map(([name, value]) => [name, JSON.stringify(value)]);
  return `${provider}/${model}, from ${source}\n${table(["price", "US dollars"], rows, "")}`;
}

function showMissing({ list, missing }: Pick<PriceList, "list" | "missing">): string {
  const rows = missing.map(({ provider, model, calls }) => [provider, model, String(calls)]);
  const held = list.held.map(({ provider, model }) => [provider, model]);
  const waiting =
    held.length === 0
      ? ""
      : `\n${table(["held", "model"], held, "")}Set gateway.priceList.acceptSha256 to ${list.sha256 ?? ""} to accept them.\n`;
  return `${table(["provider", "model", "calls"], rows, "every model in use has a price")}${waiting}`;
}

function showBudgets(states: readonly BudgetState[]): string {
  return table(
    ["rule", "type", "window", "limit", "used", "reserved", "remaining", "reset", "partition"],
    states.map((state) => [
      state.is_soft ? `${state.rule} (soft)` : state.rule,
      state.type,
      state.window.replace(/\b(\d+) s\b/, (_, seconds: string) => spanOf(Number(seconds))),
      String(state.limit),
      String(state.used),
      String(state.reserved),
      String(state.remaining),
      state.reset_at ?? "",
      state.partition ?? "",
    ]),
    "no limits",
  );
}
