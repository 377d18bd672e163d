/** `signalbox import hookdeck <connections.json>` */
import type { WebhookRoutingApi } from "@signalbox/client";
import type { Command, CommandContext } from "./command.ts";
import type { HookdeckImport, ImportedRoute } from "./hookdeck-connections.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { readSource } from "./read-source.ts";
import { createItems, type ImportItem, type ImportResult, showImport } from "./import-result.ts";

export const importHookdeck: Command = {
  words: ["import", "hookdeck"],
  positionals: ["<connections.json>"],
  summary:
    "Take over connections of Hookdeck as routes, from the answer of its GET /connections; prints what it cannot map.",
  options: [
    { name: "dry-run", summary: "show what would be created, and change nothing" },
    ACCOUNT_OPTION,
    ...CLIENT_OPTIONS,
  ],
  async run(context) {
    const text = await readSource(context, context.positionals[0] ?? "");
    const { planHookdeckImport } = await import("./hookdeck-connections.ts");
    const isDry = context.hasSwitch("dry-run");
    const result = await apply(context, planHookdeckImport(text), isDry);
    context.print(result, (one) => showImport(one, isDry));
    return result.failed.length === 0 ? 0 : 1;
  },
};

async function apply(
  context: CommandContext,
  { sources, routes, notes }: HookdeckImport,
  isDry: boolean,
): Promise<ImportResult> {
  const { webhooks } = await context.account();
  const known = new Set((await webhooks.sources().all()).map(({ name }) => name));
  const absent = Object.entries(sources).filter(([name]) => !known.has(name));
  const missing = absent.map(
    ([name, { scheme, type }]) =>
      `the source ${name} is not configured: add it${scheme === null ? `, with the scheme of its sender (${type})` : ""}, set its secret, restart, and run the command again`,
  );
  const items: ImportItem[] = [];
  for (const route of routes) {
    if (!known.has(route.source)) continue;
    items.push({
      title: `route ${route.name} of ${route.source}`,
      isThere: await isThere(webhooks.routing, route),
      create: () => webhooks.routing.putRoute(route.source, route.name, route.settings),
    });
  }
  const outcome = await createItems(items, isDry);
  const configuration = {
    webhooks: {
      sources: Object.fromEntries(
        absent.map(([name, { scheme }]) => [name, { scheme: scheme ?? "generic" }]),
      ),
    },
  };
  return {
    ...outcome,
    notes: [...notes, ...missing],
    configuration: absent.length === 0 ? {} : configuration,
  };
}

async function isThere(routing: WebhookRoutingApi, { source, name }: ImportedRoute): Promise<boolean> {
  return (await routing.routes(source).all()).some((route) => route.name === name);
}
