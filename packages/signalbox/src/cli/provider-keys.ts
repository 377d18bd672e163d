/** `signalbox provider-keys …` and `signalbox keys rotate-master` */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import type { ProviderKeyChange, ProviderKey } from "@signalbox/client";
import { type Command, type CommandContext, type CommandOption, UsageError } from "./command.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { table } from "./table.ts";

const GATEWAY_OPTION: CommandOption = {
  name: "gateway",
  value: "ID",
  summary: "key of this gateway; without it, of all gateways of the account",
};

const KEY_OPTIONS: readonly CommandOption[] = [
  {
    name: "secret-file",
    value: "PATH",
    summary: "store the key in this file; - reads standard input, so that no shell history has it",
  },
  { name: "secret-id", value: "ID", summary: "env:NAME or file:PATH: where the service finds the key" },
  {
    name: "alias",
    value: "NAME",
    summary: "name for gw-aig-byok-alias; without it the key belongs to the pool",
  },
  { name: "default", value: "on|off", summary: "use a key with an alias for calls without one" },
  { name: "weight", value: "N", summary: "share of the pool's calls; default 1" },
  {
    name: "model",
    value: "GLOB",
    summary: "use the key for these models only (repeatable)",
    isRepeatable: true,
  },
  { name: "rate", value: "LIMIT/SECONDS", summary: "calls per period, e.g. 60/60; off removes the limit" },
];

export const providerKeyCommands: readonly Command[] = [
  {
    words: ["provider-keys", "list"],
    summary: "List provider keys with their state, without the keys themselves.",
    options: [GATEWAY_OPTION, ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const keys = await (await apiOf(context)).list({ per_page: 50 }).all();
      context.print(keys, (rows) =>
        table(
          ["id", "provider", "alias", "key", "weight", "status", "until", "last used"],
          rows.map((row) => [
            row.id,
            row.provider_slug,
            row.alias === "" ? "(pool)" : row.alias + (row.default_config ? " (default)" : ""),
            row.secret_preview,
            String(row.weight),
            row.status,
            row.cooldown_until ?? "-",
            row.last_used_at ?? "never",
          ]),
          "no provider keys",
        ),
      );
    },
  },
  {
    words: ["provider-keys", "create"],
    positionals: ["<provider>"],
    summary: "Add a provider key: stored encrypted, or named by a variable or file of the service.",
    options: [...KEY_OPTIONS, GATEWAY_OPTION, ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const change = await readChange(context);
      const key = await (
        await apiOf(context)
      ).create({
        provider_slug: context.positionals[0] ?? "",
        ...change,
      });
      context.print(key, ({ id }) => `created ${id}\n`);
    },
  },
  {
    words: ["provider-keys", "patch"],
    positionals: ["<id>"],
    summary: "Change a provider key; it counts as active again.",
    options: [
      ...KEY_OPTIONS,
      { name: "disabled", value: "on|off", summary: "do not use the key" },
      GATEWAY_OPTION,
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      const change = { ...(await readChange(context)), disabled: toSwitch(context, "disabled") };
      if (Object.values(change).every((value) => value === undefined)) {
        throw new UsageError("give at least one change, e.g. --weight 2");
      }
      const key = await (await apiOf(context)).update(context.positionals[0] ?? "", change);
      context.print(key, showKey);
    },
  },
  {
    words: ["provider-keys", "delete"],
    positionals: ["<id>"],
    summary: "Delete a provider key.",
    options: [GATEWAY_OPTION, ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const key = await (await apiOf(context)).delete(context.positionals[0] ?? "");
      context.print(key, ({ id }) => `deleted ${id}\n`);
    },
  },
  {
    words: ["keys", "rotate-master"],
    summary:
      "Encrypt all stored provider keys with a new master key: a generated one, or the first of SIGNALBOX_MASTER_KEY.",
    options: [...CLIENT_OPTIONS],
    async run(context) {
      const result = await (await context.client()).rotateMasterKey();
      context.print(result, ({ rotated, unreadable }) =>
        unreadable === 0
          ? `encrypted ${rotated} keys with the new master key; old master keys are no longer needed\n`
          : `encrypted ${rotated} keys with the new master key; ${unreadable} cannot be decrypted, so keep the old master keys\n`,
      );
      return result.unreadable === 0 ? 0 : 1;
    },
  },
];

async function apiOf(context: CommandContext) {
  return (await context.account()).providerKeys(context.option("gateway"));
}

async function readChange(context: CommandContext): Promise<ProviderKeyChange> {
  const models = context.options("model");
  const rate = toRate(context.option("rate"));
  const weight = context.option("weight");
  if (weight !== undefined && !/^\d{1,4}$/.test(weight)) {
    throw new UsageError(`--weight: expected a whole number, found "${weight}"`);
  }
  return {
    secret: await readSecret(context),
    secret_id: context.option("secret-id"),
    alias: context.option("alias"),
    default_config: toSwitch(context, "default"),
    weight: weight === undefined ? undefined : Number(weight),
    models: models.length === 0 ? undefined : models,
    rate_limit: rate?.limit,
    rate_limit_period: rate?.period,
  };
}

async function readSecret(context: CommandContext): Promise<string | undefined> {
  const path = context.option("secret-file");
  if (path === undefined) return undefined;
  if (path === "-") return (await text(process.stdin)).trim();
  try {
    return readFileSync(resolve(context.workingFolder, path), "utf8").trim();
  } catch {
    throw new UsageError(`--secret-file: cannot read ${path}`);
  }
}

function toRate(given: string | undefined): { limit: number | null; period?: number } | undefined {
  if (given === undefined) return undefined;
  if (given === "off") return { limit: null };
  const match = /^(\d{1,9})\/(\d{1,8})$/.exec(given);
  if (match === null) throw new UsageError(`--rate: expected LIMIT/SECONDS, e.g. 60/60, found "${given}"`);
  return { limit: Number(match[1]), period: Number(match[2]) };
}

function toSwitch(context: CommandContext, name: string): boolean | undefined {
  const given = context.option(name);
  if (given === undefined) return undefined;
  if (given !== "on" && given !== "off") {
    throw new UsageError(`--${name}: expected on or off, found "${given}"`);
  }
  return given === "on";
}

function showKey(key: ProviderKey): string {
  return Object.entries(key)
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}\n`)
    .join("");
}
