/** `signalbox import cloudflare [answers.json]` */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type AccountClient, type Gateway, type GatewaySettings, pathOf } from "@signalbox/client";
import { type Command, type CommandContext, UsageError } from "./command.ts";
import type { CloudflareAnswers } from "./cloudflare-answers.ts";
import type { CloudflareImport, ImportedGateway } from "./cloudflare-gateways.ts";
import { readEnvironment } from "./environment.ts";
import { createItems, type ImportItem, type ImportResult, showImport } from "./import-result.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { readSource } from "./read-source.ts";

const API_URL = "https://api.cloudflare.com/client/v4";
const PAGE_SIZE = 50;

export const importCloudflare: Command = {
  words: ["import", "cloudflare"],
  positionals: ["[answers.json]"],
  summary:
    "Take over gateways of Cloudflare AI Gateway with settings, dynamic routes and custom providers; prints what it cannot map.",
  options: [
    { name: "dry-run", summary: "show what would be created, and change nothing" },
    {
      name: "api-token",
      value: "TOKEN",
      summary: "token of Cloudflare with AI Gateway Read (CLOUDFLARE_API_TOKEN)",
    },
    { name: "account-id", value: "ID", summary: "account of Cloudflare (CLOUDFLARE_ACCOUNT_ID)" },
    {
      name: "api-url",
      value: "URL",
      summary: `address of its interface (CLOUDFLARE_BASE_URL; default: ${API_URL})`,
    },
    {
      name: "write-answers",
      value: "FILE",
      summary: "write what is read there to a new file, which a later import can read, and import nothing",
    },
    ACCOUNT_OPTION,
    ...CLIENT_OPTIONS,
  ],
  async run(context) {
    const answers = await readAnswers(context);
    const file = context.option("write-answers");
    if (file !== undefined) return writeAnswers(context, file, answers);
    // The rules of gateways are loaded for this command only.
    const { planCloudflareImport } = await import("./cloudflare-gateways.ts");
    const isDry = context.hasSwitch("dry-run");
    const result = await apply(context, planCloudflareImport(answers), isDry);
    context.print(result, (one) => showImport(one, isDry));
    return result.failed.length === 0 ? 0 : 1;
  },
};

async function readAnswers(context: CommandContext): Promise<CloudflareAnswers> {
  const { readFromApi, readFromText } = await import("./cloudflare-answers.ts");
  const [file] = context.positionals;
  if (file !== undefined) return readFromText(await readSource(context, file));
  const environment = readEnvironment(context);
  const token = context.option("api-token") ?? environment["CLOUDFLARE_API_TOKEN"] ?? "";
  const accountId = context.option("account-id") ?? environment["CLOUDFLARE_ACCOUNT_ID"] ?? "";
  if (token === "" || accountId === "") {
    throw new UsageError(
      "give a file with answers, or set CLOUDFLARE_API_TOKEN (a token with AI Gateway Read) and CLOUDFLARE_ACCOUNT_ID",
    );
  }
  return readFromApi({
    url: context.option("api-url") ?? environment["CLOUDFLARE_BASE_URL"] ?? API_URL,
    accountId,
    token,
  });
}

/** For the owner only: headers of receivers and of custom providers can be credentials. */
function writeAnswers(context: CommandContext, file: string, { lists, failures }: CloudflareAnswers): void {
  try {
    const text = `${JSON.stringify(lists, null, 2)}\n`;
    writeFileSync(resolve(context.workingFolder, file), text, { flag: "wx", mode: 0o600 });
  } catch (error) {
    throw new UsageError(`--write-answers: ${error instanceof Error ? error.message : String(error)}`);
  }
  const result = { file, lists: Object.keys(lists), failures };
  context.print(result, () => {
    const missing = Object.values(failures).map((reason) => `not written: ${reason}\n`);
    return `wrote ${result.lists.length} lists to ${file}\n${missing.join("")}`;
  });
}

async function apply(context: CommandContext, plan: CloudflareImport, isDry: boolean): Promise<ImportResult> {
  const account = await context.account();
  const notes = [...plan.notes];
  const present = await account.gateways.list({ per_page: PAGE_SIZE }).all();
  const items = [...(await providerItems(context, plan, account.id))];
  for (const gateway of plan.gateways) {
    const before = present.find(({ id }) => id === gateway.id);
    items.push(await gatewayItem(account, gateway, before, notes));
    items.push(...(await routeItems(account, gateway, before !== undefined)));
  }
  return { ...(await createItems(items, isDry)), notes, configuration: {} };
}

async function providerItems(
  context: CommandContext,
  { providers }: CloudflareImport,
  accountId: string,
): Promise<ImportItem[]> {
  if (providers.length === 0) return [];
  const client = await context.client();
  const path = pathOf`/accounts/${accountId}/ai-gateway/custom-providers` as `/${string}`;
  const present = new Set<string>();
  for (let page = 1; ; page++) {
    const { result, info } = await client.request<{ readonly slug: string }[]>("GET", path, {
      query: { page, per_page: PAGE_SIZE },
    });
    for (const { slug } of result) present.add(slug);
    if (result.length === 0 || present.size >= (info.total_count ?? 0)) break;
  }
  return providers.map((body) => ({
    title: `custom provider ${body.slug}`,
    isThere: present.has(body.slug),
    create: () => client.request("POST", path, { body }),
  }));
}

/**
 * A gateway that is there gets the settings that are still at their defaults: `default` is there from the beginning. What somebody has set here
 * is kept.
 */
async function gatewayItem(
  account: AccountClient,
  { id, settings }: ImportedGateway,
  before: Gateway | undefined,
  notes: string[],
): Promise<ImportItem> {
  if (before === undefined) {
    return {
      title: `gateway ${id}`,
      isThere: false,
      create: () => account.gateways.create({ id, ...settings }),
    };
  }
  const { DEFAULT_SETTINGS } = await import("../gateway/settings/gateway-settings.ts");
  const { hideOtel } = await import("../gateway/settings/otel-receivers.ts");
  const defaults: Readonly<Record<string, unknown>> = { ...DEFAULT_SETTINGS };
  const now: Readonly<Record<string, unknown>> = { ...before };
  const shown: Readonly<Record<string, unknown>> = {
    ...settings,
    ...(settings.otel === undefined ? {} : { otel: hideOtel(settings.otel) }),
  };
  const other = Object.keys(shown).filter((name) => !isDeepStrictEqual(shown[name], now[name]));
  const isOwn = (name: string) => !isDeepStrictEqual(now[name], defaults[name]);
  const kept = other.filter(isOwn);
  if (kept.length > 0) notes.push(`${id}: differs there and was kept here: ${kept.join(", ")}`);
  const open = other.filter((name) => !isOwn(name));
  const changes = Object.fromEntries(
    Object.entries(settings).filter(([name]) => open.includes(name)),
  ) as Partial<GatewaySettings>;
  return {
    title: open.length === 0 ? `gateway ${id}` : `settings of gateway ${id}: ${open.join(", ")}`,
    isThere: open.length === 0,
    create: () => account.gateways.update(id, changes),
  };
}

async function routeItems(
  account: AccountClient,
  { id, routes }: ImportedGateway,
  isThere: boolean,
): Promise<ImportItem[]> {
  if (routes.length === 0) return [];
  const present = isThere ? await account.routes(id).list({ per_page: PAGE_SIZE }).all() : [];
  return routes.map((route) => ({
    title: `route ${route.name} of ${id}`,
    isThere: present.some(({ name }) => name === route.name),
    create: () => account.routes(id).create(route),
  }));
}
