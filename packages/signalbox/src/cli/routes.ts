/** `signalbox routes …` and `signalbox circuits …` */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { DynamicRoute, RoutesApi, RouteTrialResult } from "@signalbox/client";
import { type Command, type CommandContext, type CommandOption, UsageError } from "./command.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { table } from "./table.ts";

const GATEWAY_OPTION: CommandOption = { name: "gateway", value: "ID", summary: "gateway (default: default)" };
const OPTIONS: readonly CommandOption[] = [GATEWAY_OPTION, ACCOUNT_OPTION, ...CLIENT_OPTIONS];
const PAGE_SIZE = 100;

export const routeCommands: readonly Command[] = [
  {
    words: ["routes", "list"],
    summary: "List the dynamic routes of a gateway.",
    options: OPTIONS,
    async run(context) {
      const routes = await (await apiOf(context)).list({ per_page: PAGE_SIZE }).all();
      context.print(routes, (rows) =>
        table(
          ["name", "model", "elements", "version", "modified"],
          rows.map((route) => [
            route.name,
            `dynamic/${route.name}`,
            String(route.elements.length),
            route.version.version_id,
            route.modified_at,
          ]),
          "no routes",
        ),
      );
    },
  },
  {
    words: ["routes", "show"],
    positionals: ["<name>"],
    summary: "Show the deployed graph of a dynamic route.",
    options: OPTIONS,
    async run(context) {
      const { route } = await find(context);
      context.print(route, showGraph);
    },
  },
  {
    words: ["routes", "create"],
    positionals: ["<name>", "<file>"],
    summary: "Create a dynamic route from a JSON file with its elements, and deploy it.",
    options: OPTIONS,
    async run(context) {
      const [name = "", file = ""] = context.positionals;
      const elements = readElements(context, file);
      const route = await (await apiOf(context)).create({ name, elements });
      context.print(route, showDeployed);
    },
  },
  {
    words: ["routes", "deploy"],
    positionals: ["<name>", "[file]"],
    summary:
      "Deploy a JSON file as a new version of a dynamic route, or an earlier version with --version-id.",
    options: [
      { name: "version-id", value: "ID", summary: "version to deploy; see routes versions" },
      { name: "draft", summary: "save the version without deploying it" },
      ...OPTIONS,
    ],
    async run(context) {
      const { api, route } = await find(context);
      const [, file] = context.positionals;
      const given = context.option("version-id");
      if ((file === undefined) === (given === undefined)) throw new UsageError("give a file or --version-id");
      const version =
        file === undefined
          ? given
          : (await api.createVersion(route.id, readElements(context, file))).version_id;
      if (context.hasSwitch("draft")) {
        context.print({ version_id: version }, () => `saved version ${version} of ${route.name}\n`);
        return;
      }
      context.print(await api.deploy(route.id, version ?? ""), showDeployed);
    },
  },
  {
    words: ["routes", "versions"],
    positionals: ["<name>"],
    summary: "List the versions of a dynamic route, newest first.",
    options: OPTIONS,
    async run(context) {
      const { api, route } = await find(context);
      context.print(await api.versions(route.id), (rows) =>
        table(
          ["version", "deployed", "valid", "created"],
          rows.map((row) => [
            row.version_id,
            row.active === "true" ? "yes" : "",
            row.is_valid ? "yes" : "no",
            row.created_at,
          ]),
          "no versions",
        ),
      );
    },
  },
  {
    words: ["routes", "try"],
    positionals: ["<name>"],
    summary: "Show which way a request would take through a dynamic route. No model is called.",
    options: [
      { name: "metadata", value: "JSON", summary: "metadata of the request" },
      { name: "body", value: "JSON", summary: "body of the request" },
      {
        name: "header",
        value: "NAME:VALUE",
        summary: "header of the request (repeatable)",
        isRepeatable: true,
      },
      { name: "session", value: "ID", summary: "session of the request" },
      { name: "failing", value: "ID", summary: "model element that fails (repeatable)", isRepeatable: true },
      { name: "file", value: "FILE", summary: "elements to try instead of the deployed ones" },
      { name: "version-id", value: "ID", summary: "version to try instead of the deployed one" },
      ...OPTIONS,
    ],
    async run(context) {
      const { api, route } = await find(context);
      const file = context.option("file");
      const result = await api.try(route.id, {
        metadata: readJson(context, "metadata") as Record<string, unknown> | undefined,
        body: readJson(context, "body"),
        headers: readHeaders(context),
        session_id: context.option("session"),
        failing: context.options("failing"),
        version_id: context.option("version-id"),
        elements: file === undefined ? undefined : readElements(context, file),
      });
      context.print(result, showTrial);
      return result.model === null ? 1 : 0;
    },
  },
  {
    words: ["routes", "rename"],
    positionals: ["<name>", "<new-name>"],
    summary: "Rename a dynamic route.",
    options: OPTIONS,
    async run(context) {
      const { api, route } = await find(context);
      const renamed = await api.rename(route.id, context.positionals[1] ?? "");
      context.print(renamed, ({ name }) => `renamed ${route.name} to ${name}\n`);
    },
  },
  {
    words: ["routes", "delete"],
    positionals: ["<name>"],
    summary: "Delete a dynamic route with its versions.",
    options: OPTIONS,
    async run(context) {
      const { api, route } = await find(context);
      context.print(await api.delete(route.id), ({ name }) => `deleted route ${name}\n`);
    },
  },
  {
    words: ["circuits", "list"],
    summary:
      "List the targets with recent failures; calls with another step skip those whose circuit is open.",
    options: OPTIONS,
    async run(context) {
      context.print(await (await apiOf(context)).circuits(), (rows) =>
        table(
          ["provider", "model", "key", "state", "failures", "tried again at"],
          rows.map((row) => [
            row.provider,
            row.model,
            row.key_id ?? "",
            row.state,
            `${row.failures} of ${row.calls}`,
            row.probe_at ?? "",
          ]),
          "no failures",
        ),
      );
    },
  },
  {
    words: ["circuits", "close"],
    summary: "Close all circuits of a gateway.",
    options: OPTIONS,
    async run(context) {
      context.print(
        await (await apiOf(context)).closeCircuits(),
        (rows) => `closed ${rows.length} circuits\n`,
      );
    },
  },
];

async function apiOf(context: CommandContext): Promise<RoutesApi> {
  return (await context.account()).routes(context.option("gateway") ?? "default");
}

async function find(context: CommandContext): Promise<{ api: RoutesApi; route: DynamicRoute }> {
  const api = await apiOf(context);
  const name = context.positionals[0] ?? "";
  const routes = await api.list({ per_page: PAGE_SIZE }).all();
  const route = routes.find((candidate) => candidate.name === name);
  if (route !== undefined) return { api, route };
  const known = routes.map((candidate) => candidate.name).join(", ");
  throw new UsageError(`no route is named "${name}"; there ${known === "" ? "are none" : `is ${known}`}`);
}

/** A file with the elements, or with an object that contains them, as `routes show --json` prints it. */
function readElements(context: CommandContext, file: string): readonly unknown[] {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(resolve(context.workingFolder, file), "utf8"));
  } catch (error) {
    throw new UsageError(`cannot read ${file}: ${(error as Error).message}`);
  }
  const elements = Array.isArray(value) ? value : (value as { elements?: unknown } | null)?.elements;
  if (!Array.isArray(elements)) throw new UsageError(`${file} must contain a list of elements`);
  return elements;
}

function readJson(context: CommandContext, option: string): unknown {
  const text = context.option(option);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`--${option}: expected JSON`);
  }
}

function readHeaders(context: CommandContext): Record<string, string> {
  return Object.fromEntries(
    context.options("header").map((text) => {
      const colon = text.indexOf(":");
      if (colon < 1) throw new UsageError(`--header: expected NAME:VALUE, found "${text}"`);
      return [text.slice(0, colon).trim(), text.slice(colon + 1).trim()];
    }),
  );
}

function showDeployed({ name, version }: DynamicRoute): string {
  return `deployed version ${version.version_id}; call it as dynamic/${name}\n`;
}

function showGraph({ elements }: DynamicRoute): string {
  return table(
    ["element", "type", "outputs"],
    elements.map(({ id, type, outputs = {} }) => [
      id,
      type,
      Object.entries(outputs)
        .map(([name, { elementId }]) => `${name} → ${elementId}`)
        .join(", "),
    ]),
    "no elements",
  );
}

function showTrial({ way, provider, model, error }: RouteTrialResult): string {
  const lines = way.map(
    ({ id, type, output }) => `${id} (${type})${output === null ? "" : ` → ${output}`}\n`,
  );
  return `${lines.join("")}${model === null ? `error: ${error}` : `calls ${provider}/${model}`}\n`;
}
