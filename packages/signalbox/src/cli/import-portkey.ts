/** `signalbox import portkey <configs.json>` */
import { basename, resolve } from "node:path";
import { type AccountClient, type Gateway, SignalboxApiError } from "@signalbox/client";
import { type Command, type CommandContext, UsageError } from "./command.ts";
import {
  createItems,
  type ImportItem,
  type ImportResult,
  showImport,
  writeConfiguration,
} from "./import-result.ts";
import { isSameKey, keyTitle } from "./imported-keys.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import type { PortkeyImport } from "./portkey-config.ts";
import { portkeySlug } from "./portkey-providers.ts";
import { readSource } from "./read-source.ts";

const PAGE_SIZE = 50;

export const importPortkey: Command = {
  words: ["import", "portkey"],
  positionals: ["<configs.json>"],
  summary:
    "Take over configurations of Portkey's gateway as dynamic routes and settings; prints what it cannot map.",
  options: [
    { name: "dry-run", summary: "show what would be created, and change nothing" },
    {
      name: "virtual-key",
      value: "NAME=PROVIDER",
      summary: "provider of a virtual key, where neither the configuration nor its name says it; repeatable",
      isRepeatable: true,
    },
    { name: "model", value: "NAME", summary: "model of targets that leave it to the caller" },
    {
      name: "write-config",
      value: "FILE",
      summary: "write addresses of own providers to a new configuration file",
    },
    {
      name: "gateway",
      value: "ID",
      summary: "gateway that gets routes, keys and settings (default: default)",
    },
    ACCOUNT_OPTION,
    ...CLIENT_OPTIONS,
  ],
  async run(context) {
    const source = context.positionals[0] ?? "";
    const options = {
      name: basename(source).replace(/\.[^.]*$/, "") || "portkey",
      model: context.option("model") ?? null,
      virtualKeys: readVirtualKeys(context.options("virtual-key")),
    };
    const text = await readSource(context, source);
    // The rules of routes are loaded for this command only.
    const { planPortkeyImport } = await import("./portkey-config.ts");
    const isDry = context.hasSwitch("dry-run");
    const result = await apply(context, planPortkeyImport(text, options), isDry);
    context.print(result, (one) => showImport(one, isDry));
    return result.failed.length === 0 ? 0 : 1;
  },
};

function readVirtualKeys(given: readonly string[]): Map<string, string> {
  return new Map(
    given.map((text) => {
      const [, name = "", provider = ""] = /^([^=]+)=(.+)$/.exec(text) ?? [];
      if (portkeySlug(provider) === undefined)
        throw new UsageError(
          `--virtual-key ${text}: expected NAME=PROVIDER with a provider of Portkey that is known here`,
        );
      return [name, provider] as const;
    }),
  );
}

async function apply(context: CommandContext, plan: PortkeyImport, isDry: boolean): Promise<ImportResult> {
  const account = await context.account();
  const gateway = context.option("gateway") ?? "default";
  const notes = [...plan.notes];
  const items = await itemsOf(account, gateway, plan, notes);
  const file = context.option("write-config");
  if (file !== undefined && !isDry)
    writeConfiguration(resolve(context.workingFolder, file), plan.configuration);
  return { ...(await createItems(items, isDry)), notes, configuration: plan.configuration };
}

async function itemsOf(
  account: AccountClient,
  gateway: string,
  plan: PortkeyImport,
  notes: string[],
): Promise<ImportItem[]> {
  const before = await account.gateways.get(gateway).catch((error: unknown) => {
    if (error instanceof SignalboxApiError && error.status === 404)
      throw new UsageError(`there is no gateway ${gateway}: signalbox gateway create ${gateway}`);
    throw error;
  });
  const routes = await account.routes(gateway).list({ per_page: PAGE_SIZE }).all();
  const keys = await account.providerKeys(gateway).list({ per_page: PAGE_SIZE }).all();
  return [
    ...plan.keys.map((key): ImportItem => ({
      title: keyTitle(key),
      isThere: keys.some((one) => isSameKey(one, key)),
      create: () => account.providerKeys(gateway).create({ ...key, alias: "", default_config: true }),
    })),
    ...settingItems(account, before, plan, notes),
    ...plan.routes.map((route): ImportItem => ({
      title: `route ${route.name}`,
      isThere: routes.some(({ name }) => name === route.name),
      create: () => account.routes(gateway).create(route),
    })),
  ];
}

/** What somebody has set here is kept. */
function settingItems(
  account: AccountClient,
  before: Gateway,
  plan: PortkeyImport,
  notes: string[],
): ImportItem[] {
  return (["retry_max_attempts", "cache_ttl"] as const).flatMap((name): ImportItem[] => {
    const wanted = plan.gateway[name];
    const now = before[name];
    if (wanted === undefined) return [];
    const isOpen = now === null || now === 0;
    if (!isOpen && now !== wanted)
      notes.push(`${name} of the gateway is ${now} and was kept; the configuration says ${wanted}`);
    return [
      {
        title:
          isOpen || now === wanted ? `${name} ${wanted} of the gateway` : `${name} ${now} of the gateway`,
        isThere: !isOpen,
        create: () => account.gateways.update(before.id, { [name]: wanted }),
      },
    ];
  });
}
