/** `signalbox import litellm <config.yaml>` */
import { existsSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { AccountClient, DynamicRoute, PriceTable, ProviderKey, SpendRule } from "@signalbox/client";
import { type Command, type CommandContext, UsageError } from "./command.ts";
import type { ImportedKey, LiteLlmImport } from "./litellm-config.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { readSource } from "./read-source.ts";
import { createItems, type ImportItem, type ImportResult, showImport } from "./import-result.ts";

export const importCommands: readonly Command[] = [
  {
    words: ["import", "litellm"],
    positionals: ["<config.yaml>"],
    summary:
      "Take over models, fallbacks, keys, prices and budgets of a LiteLLM proxy; prints what it cannot map.",
    options: [
      { name: "dry-run", summary: "show what would be created, and change nothing" },
      {
        name: "write-config",
        value: "FILE",
        summary: "write the names of models to a new configuration file",
      },
      { name: "gateway", value: "ID", summary: "gateway that gets keys and routes (default: default)" },
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      const text = await readSource(context, context.positionals[0] ?? "");
      // The parser of YAML is loaded for this command only.
      const { planLiteLlmImport } = await import("./litellm-config.ts");
      const plan = planLiteLlmImport(text);
      const isDry = context.hasSwitch("dry-run");
      const result = isDry ? preview(plan) : await apply(context, plan);
      context.print(result, (one) => showImport(one, isDry));
      return result.failed.length === 0 ? 0 : 1;
    },
  },
];

/** What the account has before the import. */
interface Present {
  readonly keys: readonly ProviderKey[];
  readonly routes: readonly DynamicRoute[];
  readonly limits: readonly SpendRule[];
  readonly prices: PriceTable;
}

interface Item extends Omit<ImportItem, "create"> {
  create(account: AccountClient, gateway: string): Promise<unknown>;
}

const NOTHING: Present = { keys: [], routes: [], limits: [], prices: {} };

function preview(plan: LiteLlmImport): ImportResult {
  const created = itemsOf(plan, NOTHING).map(({ title }) => title);
  return { created, kept: [], failed: [], notes: plan.notes, configuration: plan.configuration };
}

async function apply(context: CommandContext, plan: LiteLlmImport): Promise<ImportResult> {
  const file = context.option("write-config");
  if (file !== undefined && existsSync(resolve(context.workingFolder, file))) {
    throw new UsageError(`--write-config: ${file} exists`);
  }
  const account = await context.account();
  const gateway = context.option("gateway") ?? "default";
  const items = itemsOf(plan, await readPresent(account, gateway)).map((item) => ({
    ...item,
    create: () => item.create(account, gateway),
  }));
  const outcome = await createItems(items, false);
  if (file !== undefined) {
    const text = `${JSON.stringify(plan.configuration, null, 2)}\n`;
    writeFileSync(resolve(context.workingFolder, file), text, { flag: "wx" });
  }
  return { ...outcome, notes: plan.notes, configuration: plan.configuration };
}

async function readPresent(account: AccountClient, gateway: string): Promise<Present> {
  return {
    keys: await account.providerKeys(gateway).list({ per_page: 50 }).all(),
    routes: await account.routes(gateway).list().all(),
    limits: await account.budgets.limits(),
    prices: await account.budgets.prices(),
  };
}

function itemsOf(plan: LiteLlmImport, present: Present): Item[] {
  const prices = Object.entries(plan.prices).flatMap(([provider, models]) =>
    Object.entries(models).map(([model, price]) => ({ provider, model, price })),
  );
  return [
    ...plan.keys.map((key): Item => ({
      title: keyTitle(key),
      isThere: present.keys.some((one) => isSameKey(one, key)),
      create: (account, gateway) =>
        account.providerKeys(gateway).create({ ...key, alias: "", default_config: true }),
    })),
    ...prices.map(({ provider, model, price }): Item => ({
      title: `price of ${provider}/${model}`,
      isThere: present.prices[provider]?.[model] !== undefined,
      create: (account) =>
        account.budgets.changePrices((now) => ({
          ...now,
          [provider]: { ...now[provider], [model]: price },
        })),
    })),
    ...plan.limits.map((limit): Item => ({
      title: `limit ${limit.id ?? ""}`,
      isThere: present.limits.some(({ id }) => id === limit.id),
      create: (account) => account.budgets.changeLimits((now) => [...now, limit]),
    })),
    ...Object.entries(plan.gateway).map(([name, value]): Item => ({
      title: `${name} ${value} of the gateway`,
      isThere: false,
      create: (account, gateway) => account.gateways.update(gateway, { [name]: value }),
    })),
    ...plan.routes.map((route): Item => ({
      title: `route ${route.name}`,
      isThere: present.routes.some(({ name }) => name === route.name),
      create: (account, gateway) => account.routes(gateway).create(route),
    })),
  ];
}

/** The interface shows the name of a variable without its scheme, and of a stored key the last four characters. */
function isSameKey(
  one: ProviderKey,
  { provider_slug: provider, secret, secret_id: id }: ImportedKey,
): boolean {
  if (one.provider_slug !== provider) return false;
  return secret === undefined
    ? `env:${one.secret_id}` === id
    : one.secret_preview !== "" && secret.endsWith(one.secret_preview.replace("…", ""));
}

/** Without the key. */
function keyTitle({ provider_slug: provider, secret_id: id }: ImportedKey): string {
  return `key of ${provider} ${id === undefined ? "(from the file, stored encrypted)" : `(${id})`}`;
}
