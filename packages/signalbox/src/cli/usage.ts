/** `signalbox usage` */
import type { Usage, UsageQuery } from "@signalbox/client";
import { type Command, type CommandContext, UsageError } from "./command.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { copyBody } from "./read-body.ts";
import { table } from "./table.ts";

const MAX_VALUES = 1000;

export const usageCommand: Command = {
  words: ["usage"],
  summary: "Show calls, tokens, cost and times by token, owner, user, metadata, model, gateway or time.",
  options: [
    {
      name: "by",
      value: "GROUP",
      summary:
        "hour, day, provider, model, gateway, tag:KEY, token, owner, user, metadata:KEY or token_tag:KEY (repeatable)",
      values: ["hour", "day", "provider", "model", "gateway", "token", "owner", "user", "tag:", "metadata:"],
      isRepeatable: true,
    },
    {
      name: "only",
      value: "GROUP=VALUE",
      summary: "only the calls of a token, owner, user or metadata value (repeatable)",
      isRepeatable: true,
    },
    { name: "gateway", value: "ID", summary: "only this gateway (repeatable)", isRepeatable: true },
    { name: "start", value: "TIME", summary: "ISO 8601 time; default seven days ago" },
    { name: "end", value: "TIME", summary: "ISO 8601 time; default now" },
    {
      name: "limit",
      value: "N",
      summary: `number of tokens, owners, users or values; the rest is "other" (default 100)`,
    },
    { name: "csv", summary: "write CSV with all figures" },
    ACCOUNT_OPTION,
    ...CLIENT_OPTIONS,
  ],
  async run(context) {
    const groups = context.options("by").flatMap((text) => text.split(","));
    const query = queryOf(context, groups);
    const account = await context.account();
    if (context.hasSwitch("csv")) {
      await copyBody(await account.exportUsage(query), context.out);
      return;
    }
    const usage = await account.usage(query);
    context.print(usage, (rows) =>
      table(
        [
          ...groups,
          "calls",
          "errors",
          "tokens in",
          "out",
          "cost",
          "p50 ms",
          "p95",
          "p99",
          "first token p50",
          "p95",
        ],
        rows.map((row) => [
          ...groups.map((group) => groupText(row, group)),
          ...[row.calls, row.errors, row.tokens_in, row.tokens_out].map(String),
          `$${row.cost.toFixed(6)}`,
          ...[row.duration_p50, row.duration_p95, row.duration_p99].map(msText),
          ...[row.time_to_first_token_p50, row.time_to_first_token_p95].map(msText),
        ]),
        "no calls",
      ),
    );
  },
};

function queryOf(context: CommandContext, groups: readonly string[]): UsageQuery {
  const [start, end, limit] = [context.option("start"), context.option("end"), context.option("limit")];
  if (limit !== undefined && (!/^[1-9]\d{0,3}$/.test(limit) || Number(limit) > MAX_VALUES)) {
    throw new UsageError(`--limit: expected a whole number from 1 to ${MAX_VALUES}, found ${limit}`);
  }
  return {
    ...(groups.length === 0 ? {} : { group_by: groups }),
    ...(start === undefined ? {} : { start }),
    ...(end === undefined ? {} : { end }),
    ...(limit === undefined ? {} : { limit: Number(limit) }),
    gateway_id: context.options("gateway"),
    only: context.options("only"),
  };
}

function groupText(row: Usage, group: string): string {
  if (row.other === true && !(group in { hour: 1, day: 1, provider: 1, model: 1, gateway: 1 }))
    return "(other)";
  const [kind = "", key = ""] = group.split(/:(.*)/s);
  const values: Record<string, string | null | undefined> = {
    hour: row.hour,
    day: row.day?.slice(0, 10),
    provider: row.provider,
    model: row.model,
    gateway: row.gateway_id,
    tag: row.tag,
    token: row.token_name == null ? row.token_id : `${row.token_name} (${row.token_id})`,
    owner: row.owner,
    user: row.user,
    metadata: row.metadata?.[key],
    token_tag: row.token_tags?.[key],
  };
  return values[kind] ?? "-";
}

function msText(ms: number | null): string {
  return ms === null ? "-" : String(Math.round(ms));
}
