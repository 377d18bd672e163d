/** `signalbox token …` */
import type { Token, TokenChange, Usage } from "@signalbox/client";
import type { Permission } from "@signalbox/protocol";
import { type Command, type CommandContext, UsageError } from "./command.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { table } from "./table.ts";
import { POLICY_OPTIONS, readPolicy } from "./token-options.ts";

const EXPIRY_OPTION = {
  name: "expires-at",
  value: "TIME",
  summary: "ISO 8601 time at which the token expires",
};
const CLEARABLE = [
  "budgets",
  "soft_budget",
  "rate_limits",
  "models",
  "providers",
  "routes",
  "guardrails",
  "metadata",
  "owner",
  "tags",
  "expires_at",
] as const;

export const tokenCommands: readonly Command[] = [
  {
    words: ["token", "create"],
    positionals: ["<name>"],
    summary: "Create a token and print it. It cannot be shown again.",
    options: [
      {
        name: "permission",
        value: "NAME",
        summary: "permission, e.g. tags.read (repeatable; edit does not include read)",
        isRepeatable: true,
      },
      {
        name: "gateway",
        value: "ID",
        summary: "bind the token to a gateway; it can then have gateway.* and tokens.edit",
      },
      EXPIRY_OPTION,
      ...POLICY_OPTIONS,
      { name: "disabled", summary: "refuse the token until it is enabled" },
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      const permissions = context.options("permission");
      if (permissions.length === 0)
        throw new UsageError("give at least one --permission, e.g. --permission tags.read");
      const policy = readPolicy(context);
      const { tokens } = await context.account();
      const token = await tokens.create({
        name: context.positionals[0] ?? "",
        // The service validates the names.
        permissions: permissions as Permission[],
        gateway_id: context.option("gateway"),
        expires_at: context.option("expires-at"),
        ...policy,
        disabled: context.hasSwitch("disabled") ? true : undefined,
      });
      context.print(token, ({ token: text }) => `${text}\n`);
    },
  },
  {
    words: ["token", "list"],
    summary: "List the tokens of an account, without their secret text.",
    options: [
      { name: "owner", value: "NAME", summary: "only tokens of this owner" },
      { name: "gateway", value: "ID", summary: "only tokens that are bound to this gateway" },
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      const filter = { owner: context.option("owner"), gateway_id: context.option("gateway") };
      const tokens = await (await context.account()).tokens.list(filter).all();
      context.print(tokens, (rows) =>
        table(
          ["id", "name", "ends in", "permissions", "gateway", "owner", "state", "expires", "last used"],
          rows.map((row) => [
            row.id,
            row.name,
            row.last_four,
            row.permissions.join(","),
            row.gateway_id ?? "-",
            row.owner ?? "-",
            row.disabled ? "disabled" : "active",
            row.expires_at ?? "never",
            row.last_used_at ?? "never",
          ]),
          "no tokens",
        ),
      );
    },
  },
  {
    words: ["token", "show"],
    positionals: ["<id>"],
    summary: "Show a token with its limits, without its secret text.",
    options: [ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      context.print(await (await context.account()).tokens.get(idOf(context)), showToken);
    },
  },
  {
    words: ["token", "patch"],
    positionals: ["<id>"],
    summary: "Change a token; a repeatable option replaces the whole list.",
    options: [
      { name: "name", value: "NAME", summary: "name of the token" },
      EXPIRY_OPTION,
      ...POLICY_OPTIONS,
      {
        name: "clear",
        value: "MEMBER",
        summary: `remove a limit: ${CLEARABLE.join(", ")} (repeatable)`,
        values: CLEARABLE,
        isRepeatable: true,
      },
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      const change: TokenChange = {
        ...readPolicy(context),
        name: context.option("name"),
        expires_at: context.option("expires-at"),
        ...toCleared(context.options("clear")),
      };
      if (Object.values(change).every((value) => value === undefined)) {
        throw new UsageError("give at least one change, e.g. --budget 10/month");
      }
      context.print(await (await context.account()).tokens.update(idOf(context), change), showToken);
    },
  },
  {
    words: ["token", "rotate"],
    positionals: ["<id>"],
    summary: "Give a token a new secret text and print it. It cannot be shown again.",
    options: [
      { name: "grace", value: "SECONDS", summary: "how long the old text stays valid; default 0" },
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      const grace = context.option("grace");
      if (grace !== undefined && !/^\d{1,9}$/.test(grace)) {
        throw new UsageError(`--grace: expected a whole number of seconds, found "${grace}"`);
      }
      const { tokens } = await context.account();
      const token = await tokens.rotate(idOf(context), { grace_s: grace === undefined ? 0 : Number(grace) });
      context.print(token, ({ token: text }) => `${text}\n`);
    },
  },
  switchCommand("disable", true, "Refuse a token until it is enabled; its connections end."),
  switchCommand("enable", false, "Accept a disabled token again."),
  {
    words: ["token", "usage"],
    positionals: ["<id>"],
    summary: "Show calls, tokens and cost of a token.",
    options: [
      {
        name: "by",
        value: "GROUP",
        summary: "hour, day, provider, model or gateway (repeatable)",
        values: ["hour", "day", "provider", "model", "gateway"],
        isRepeatable: true,
      },
      { name: "start", value: "TIME", summary: "ISO 8601 time; default seven days ago" },
      { name: "end", value: "TIME", summary: "ISO 8601 time; default now" },
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      const groups = context.options("by");
      const [start, end] = [context.option("start"), context.option("end")];
      const usage = await (
        await context.account()
      ).tokens.usage(idOf(context), {
        ...(groups.length === 0 ? {} : { group_by: groups }),
        ...(start === undefined ? {} : { start }),
        ...(end === undefined ? {} : { end }),
      });
      context.print(usage, (rows) =>
        table(
          [...groups, "calls", "errors", "cached", "tokens in", "tokens out", "cost"],
          rows.map((row) => [
            ...groups.map((group) => groupOf(row, group)),
            ...[row.calls, row.errors, row.cached, row.tokens_in, row.tokens_out].map(String),
            `$${row.cost.toFixed(6)}`,
          ]),
          "no calls",
        ),
      );
    },
  },
  {
    words: ["token", "delete"],
    positionals: ["<id>"],
    summary: "Delete a token: it is refused from now on.",
    options: [ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const id = idOf(context);
      const result = await (await context.account()).tokens.revoke(id);
      context.print(result, () => `deleted ${id}\n`);
    },
  },
];

function groupOf(row: Usage, group: string): string {
  const values: Record<string, string | undefined> = {
    hour: row.hour,
    day: row.day,
    provider: row.provider,
    model: row.model,
    gateway: row.gateway_id,
  };
  return values[group] ?? "";
}

function switchCommand(word: string, disabled: boolean, summary: string): Command {
  return {
    words: ["token", word],
    positionals: ["<id>"],
    summary,
    options: [ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const token = await (await context.account()).tokens.update(idOf(context), { disabled });
      context.print(token, ({ id }) => `${word}d ${id}\n`);
    },
  };
}

function toCleared(names: readonly string[]): TokenChange {
  const unknown = names.find((name) => !(CLEARABLE as readonly string[]).includes(name));
  if (unknown !== undefined) {
    throw new UsageError(`--clear: expected one of ${CLEARABLE.join(", ")}, found "${unknown}"`);
  }
  return Object.fromEntries(names.map((name) => [name, null]));
}

function showToken(token: Token): string {
  return Object.entries(token)
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}\n`)
    .join("");
}

function idOf(context: CommandContext): string {
  return context.positionals[0] ?? "";
}
