/** `signalbox import litellm <config.yaml>` */
import { resolve } from "node:path";
import type {
  AccountClient,
  BookedUsage,
  DynamicRoute,
  PriceTable,
  ProviderKey,
  SpendRule,
  Token,
} from "@signalbox/client";
import type { Command, CommandContext } from "./command.ts";
import type { LiteLlmImport } from "./litellm-config.ts";
import type { ImportedToken, LiteLlmKeys } from "./litellm-keys.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { readSource } from "./read-source.ts";
import { readEnvironment } from "./environment.ts";
import { isSameKey, keyTitle } from "./imported-keys.ts";
import {
  createItems,
  type ImportItem,
  type ImportResult,
  type IssuedToken,
  showImport,
  writeConfiguration,
} from "./import-result.ts";

export const importCommands: readonly Command[] = [
  {
    words: ["import", "litellm"],
    positionals: ["<config.yaml>"],
    summary:
      "Take over models, fallbacks, keys, prices and budgets of a LiteLLM proxy; prints what it cannot map.",
    options: [
      { name: "dry-run", summary: "show what would be created, and change nothing" },
      {
        name: "database",
        value: "URL",
        summary:
          "PostgreSQL of the proxy: also take over virtual keys with budgets, limits, models and spend as new tokens, which are printed (LITELLM_DATABASE_URL)",
      },
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
      const keys = await readKeys(context, plan);
      const isDry = context.hasSwitch("dry-run");
      const result = isDry ? preview(plan, keys) : await apply(context, plan, keys);
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
  readonly tokens: readonly Token[];
}

interface Item extends Omit<ImportItem, "create"> {
  create(account: AccountClient, gateway: string): Promise<unknown>;
}

const NOTHING: Present = { keys: [], routes: [], limits: [], prices: {}, tokens: [] };
const NO_KEYS: LiteLlmKeys = { tokens: [], limits: [], teamSpend: [], notes: [] };

async function readKeys(context: CommandContext, plan: LiteLlmImport): Promise<LiteLlmKeys> {
  const url = context.option("database") ?? readEnvironment(context)["LITELLM_DATABASE_URL"];
  if (url === undefined || url === "") return NO_KEYS;
  const { readLiteLlmDatabase } = await import("./litellm-database.ts");
  const { planLiteLlmKeys } = await import("./litellm-keys.ts");
  return planLiteLlmKeys(await readLiteLlmDatabase(url), plan, Date.now());
}

function preview(plan: LiteLlmImport, keys: LiteLlmKeys): ImportResult {
  const created = itemsOf(plan, keys, NOTHING, () => undefined).map(({ title }) => title);
  const notes = [...plan.notes, ...keys.notes];
  return { created, kept: [], failed: [], notes, configuration: plan.configuration };
}

async function apply(context: CommandContext, plan: LiteLlmImport, keys: LiteLlmKeys): Promise<ImportResult> {
  const file = context.option("write-config");
  const account = await context.account();
  const gateway = context.option("gateway") ?? "default";
  const tokens: IssuedToken[] = [];
  const onIssued = (token: IssuedToken) => {
    tokens.push(token);
    // At once: the command may be ended before it prints its result.
    const { name, key, token: secret } = token;
    (context.isJson ? context.err : context.out).write(
      `new token, which cannot be shown again: ${name} (${key}): ${secret}\n`,
    );
  };
  const present = await readPresent(account, gateway);
  const items = itemsOf(plan, keys, present, onIssued).map((item) => ({
    ...item,
    create: () => item.create(account, gateway),
  }));
  // First: a folder that is missing must not be noticed when tokens have been issued.
  if (file !== undefined) writeConfiguration(resolve(context.workingFolder, file), plan.configuration);
  const outcome = await createItems(items, false);
  const notes = [...plan.notes, ...keys.notes];
  return { ...outcome, tokens, notes, configuration: plan.configuration };
}

async function readPresent(account: AccountClient, gateway: string): Promise<Present> {
  return {
    keys: await account.providerKeys(gateway).list({ per_page: 50 }).all(),
    routes: await account.routes(gateway).list().all(),
    limits: await account.budgets.limits(),
    prices: await account.budgets.prices(),
    tokens: await account.tokens.list().all(),
  };
}

function itemsOf(
  plan: LiteLlmImport,
  keys: LiteLlmKeys,
  present: Present,
  onIssued: (token: IssuedToken) => void,
): Item[] {
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
    ...keys.limits.map((limit): Item => ({
      title: `limit ${limit.id ?? ""}`,
      isThere: present.limits.some(({ id }) => id === limit.id),
      create: (account, gateway) => createTeamLimit(account, gateway, limit, keys.teamSpend),
    })),
    ...keys.tokens.map((one): Item => ({
      title: `token ${one.token.name} for the key ${one.key}`,
      isThere: present.tokens.some(({ name }) => name === one.token.name),
      create: async (account, gateway) => onIssued(await issue(account, gateway, one)),
    })),
  ];
}

/** A limit without what was spent would begin anew: it is removed if the spend cannot be booked, and the next import creates it. */
async function createTeamLimit(
  account: AccountClient,
  gateway: string,
  limit: SpendRule,
  teamSpend: LiteLlmKeys["teamSpend"],
): Promise<void> {
  await account.budgets.changeLimits((now) => [...now, limit]);
  const spent = teamSpend.filter((one) => one.limit === limit.id);
  try {
    for (const { team, spend } of spent) await account.budgets.bookUsage(gateway, bookingOf(spend, team));
  } catch (error) {
    await account.budgets.changeLimits((now) => now.filter(({ id }) => id !== limit.id));
    throw error;
  }
}

/** A token whose spend could not be booked would have its whole budget again: it is revoked, and the next import issues it. */
async function issue(
  account: AccountClient,
  gateway: string,
  { key, token, spend, team }: ImportedToken,
): Promise<IssuedToken> {
  const created = await account.tokens.create({ ...token, gateway_id: gateway });
  try {
    if (spend > 0)
      await account.budgets.bookUsage(gateway, { ...bookingOf(spend, team), token_id: created.id });
  } catch (error) {
    await account.tokens.revoke(created.id);
    throw error;
  }
  return { name: created.name, key, token: created.token };
}

function bookingOf(cost: number, team: string | null): BookedUsage {
  return { provider: "litellm", model: "imported", cost, ...(team === null ? {} : { metadata: { team } }) };
}
