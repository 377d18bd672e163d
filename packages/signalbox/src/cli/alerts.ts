/** `signalbox alerts …` */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Alert, AlertMetric, AlertReceiver, AlertSettings } from "@signalbox/client";
import { type Command, type CommandContext, type CommandOption, UsageError } from "./command.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { table } from "./table.ts";

const OPTIONS: readonly CommandOption[] = [ACCOUNT_OPTION, ...CLIENT_OPTIONS];

export const alertCommands: readonly Command[] = [
  {
    words: ["alerts", "list"],
    summary: "List the alerts of the account and their states.",
    options: OPTIONS,
    async run(context) {
      context.print(await (await context.account()).alerts.list(), (rows) =>
        table(
          ["id", "name", "status", "metric", "value", "threshold", "since"],
          rows.map((alert) => [
            alert.id,
            alert.name,
            alert.enabled ? alert.status : "off",
            alert.metric,
            alert.value === null ? "" : String(alert.value),
            String(alert.threshold),
            alert.since ?? "",
          ]),
          "no alerts",
        ),
      );
    },
  },
  {
    words: ["alerts", "create"],
    positionals: ["[file]"],
    summary: "Create an alert from options, or from a JSON file with its settings.",
    options: [
      { name: "name", value: "TEXT", summary: "name of the alert" },
      {
        name: "metric",
        value: "METRIC",
        summary:
          "error_rate, latency_p95, spend, guardrails, failed_deliveries, paused_routes, webhook_issues or dead_letters",
        values: [
          "error_rate",
          "latency_p95",
          "spend",
          "guardrails",
          "failed_deliveries",
          "paused_routes",
          "webhook_issues",
          "dead_letters",
        ],
      },
      {
        name: "threshold",
        value: "NUMBER",
        summary: "share from 0 to 1, seconds, US dollars, or number of events",
      },
      { name: "window", value: "SECONDS", summary: "time that is measured (default 300)" },
      { name: "quiet-period", value: "SECONDS", summary: "time between two notices (default 3600)" },
      { name: "gateway", value: "ID", summary: "only calls of this gateway" },
      { name: "provider", value: "SLUG", summary: "only calls to this provider" },
      { name: "guardrail", value: "ID", summary: "only findings of this guardrail" },
      { name: "source", value: "NAME", summary: "only deliveries of this source" },
      {
        name: "webhook",
        value: "URL",
        summary: "receiver of signed webhooks (repeatable)",
        isRepeatable: true,
      },
      { name: "secret", value: "TEXT", summary: "secret that signs the webhooks" },
      { name: "slack", value: "URL", summary: "incoming webhook of Slack (repeatable)", isRepeatable: true },
      ...OPTIONS,
    ],
    async run(context) {
      const [file] = context.positionals;
      const settings = file === undefined ? fromOptions(context) : readSettings(context, file);
      context.print(await (await context.account()).alerts.create(settings), showSaved);
    },
  },
  {
    words: ["alerts", "update"],
    positionals: ["<id>", "<file>"],
    summary: "Replace the settings of an alert by those of a JSON file.",
    options: OPTIONS,
    async run(context) {
      const [id = "", file = ""] = context.positionals;
      const settings = readSettings(context, file);
      context.print(await (await context.account()).alerts.replace(id, settings), showSaved);
    },
  },
  {
    words: ["alerts", "delete"],
    positionals: ["<id>"],
    summary: "Delete an alert.",
    options: OPTIONS,
    async run(context) {
      const [id = ""] = context.positionals;
      const deleted = await (await context.account()).alerts.delete(id);
      context.print(deleted, ({ name }) => `deleted ${name}\n`);
    },
  },
  {
    words: ["alerts", "notices"],
    positionals: ["<id>"],
    summary: "List the last notices of an alert and whether they were delivered.",
    options: OPTIONS,
    async run(context) {
      const [id = ""] = context.positionals;
      context.print(await (await context.account()).alerts.notices(id), (rows) =>
        table(
          ["created", "kind", "receiver", "delivered", "attempts", "problem"],
          rows.map((notice) => [
            notice.created_at,
            notice.kind,
            notice.receiver,
            notice.delivered_at ?? "",
            String(notice.attempts),
            notice.problem ?? "",
          ]),
          "no notices",
        ),
      );
    },
  },
  {
    words: ["alerts", "test"],
    positionals: ["<id>"],
    summary: "Send a test notice to every receiver of an alert.",
    options: OPTIONS,
    async run(context) {
      const [id = ""] = context.positionals;
      const sent = await (await context.account()).alerts.test(id);
      context.print(sent, ({ queued }) => `sent to ${queued} receivers; see alerts notices\n`);
    },
  },
];

function fromOptions(context: CommandContext): AlertSettings {
  const secret = context.option("secret");
  const receivers: AlertReceiver[] = [
    ...context
      .options("webhook")
      .map((url) => ({ type: "webhook" as const, url, ...(secret === undefined ? {} : { secret }) })),
    ...context.options("slack").map((url) => ({ type: "slack" as const, url })),
  ];
  if (receivers.length === 0) throw new UsageError("give a receiver: --webhook or --slack");
  return {
    name: context.option("name") ?? missing("name"),
    metric: (context.option("metric") ?? missing("metric")) as AlertMetric,
    threshold: toNumber(context, "threshold") ?? missing("threshold"),
    window: toNumber(context, "window"),
    quiet_period: toNumber(context, "quiet-period"),
    gateway_id: context.option("gateway"),
    provider: context.option("provider"),
    guardrail: context.option("guardrail"),
    source: context.option("source"),
    receivers,
  };
}

function readSettings({ workingFolder }: CommandContext, file: string): AlertSettings {
  try {
    return JSON.parse(readFileSync(resolve(workingFolder, file), "utf8")) as AlertSettings;
  } catch (error) {
    throw new UsageError(`${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function toNumber(context: CommandContext, name: string): number | undefined {
  const text = context.option(name);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value))
    throw new UsageError(`--${name}: expected a number, found ${text}`);
  return value;
}

function missing(name: string): never {
  throw new UsageError(`--${name} is required`);
}

function showSaved({ id, name, metric, threshold }: Alert): string {
  return `saved ${name} (${id}): ${metric} at ${threshold}\n`;
}
