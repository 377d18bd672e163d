/** `signalbox webhooks …` */
import { setTimeout as sleep } from "node:timers/promises";
import type { Delivery, DeliveryQuery, DeliveryStatus } from "@signalbox/client";
import { type Command, type CommandContext, type CommandOption, UsageError } from "./command.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { stopSignal } from "./stop-signal.ts";
import { rowLine, table } from "./table.ts";
import { webhooksListen } from "./webhooks-listen.ts";
import { webhookRouteCommands } from "./webhooks-routes.ts";
import { webhooksSend } from "./webhooks-send.ts";

/** Time between two requests of `tail`. */
const TAIL_INTERVAL_MS = 500;
const MAX_PAGE = 100;

const FILTERS: readonly CommandOption[] = [
  { name: "source", value: "NAME", summary: "only this source" },
  {
    name: "status",
    value: "STATUS",
    summary: "only this status: accepted, duplicate, rejected or failed",
    values: ["accepted", "duplicate", "rejected", "failed"],
  },
  { name: "instance", value: "NAME", summary: "only deliveries to this instance" },
  { name: "type", value: "TYPE", summary: "only this event type" },
];

const TIMES: readonly CommandOption[] = [
  { name: "reason", value: "REASON", summary: "only this reason, e.g. handler_failed" },
  { name: "since", value: "TIME", summary: "only deliveries from this time on, e.g. 2026-01-31T12:00:00Z" },
  { name: "until", value: "TIME", summary: "only deliveries before this time" },
];

export const webhookCommands: readonly Command[] = [
  webhooksSend,
  {
    words: ["webhooks", "sources"],
    summary: "List webhook sources, their paths and the environment variables of their secrets.",
    options: [ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const sources = await (await context.account()).webhooks.sources().all();
      context.print(sources, (rows) =>
        table(
          ["name", "path", "secret", "agent", "signature"],
          rows.map((row) => [
            row.name,
            row.path,
            row.secrets === 0 ? `set ${row.secret_variable}` : `${row.secrets} in ${row.secret_variable}`,
            row.agent,
            row.scheme,
          ]),
          "no sources",
        ),
      );
    },
  },
  {
    words: ["webhooks", "deliveries"],
    summary: "List deliveries, newest first, with status, reason and the error of the agent.",
    options: [
      ...FILTERS,
      ...TIMES,
      { name: "unresolved", summary: "only failed deliveries that were neither replayed nor accepted later" },
      { name: "limit", value: "COUNT", summary: `number of deliveries (1 to ${MAX_PAGE}, default 50)` },
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      const rows = await readDeliveries(context, { limit: parseLimit(context, MAX_PAGE) ?? 50 });
      context.print(rows, (shown) =>
        table(
          ["id", "time", "source", "status", "type", "instance", "title", "error"],
          shown.map(toCells),
          "no deliveries",
        ),
      );
    },
  },
  {
    words: ["webhooks", "show"],
    positionals: ["<id>"],
    summary: "Show a delivery with its headers and body.",
    options: [ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const { webhooks } = await context.account();
      const delivery = await webhooks.delivery(context.positionals[0] ?? "");
      context.print(delivery, (shown) => `${JSON.stringify(shown, null, 2)}\n`);
    },
  },
  {
    words: ["webhooks", "tail"],
    summary: "Print deliveries as they arrive, until interrupted.",
    options: [
      ...FILTERS,
      { name: "limit", value: "COUNT", summary: "stop after this many deliveries" },
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    run: tail,
  },
  {
    words: ["webhooks", "replay"],
    positionals: ["[id]"],
    summary:
      "Send a stored delivery to its agent again, or with --failed all failed ones that are unresolved.",
    options: [
      { name: "failed", summary: "all failed deliveries that match the filters" },
      ...FILTERS.filter(({ name }) => name !== "status"),
      ...TIMES,
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    run: (context) => {
      const [id] = context.positionals;
      if ((id !== undefined) === context.hasSwitch("failed"))
        throw new UsageError("give the id of a delivery, or --failed");
      return id === undefined ? replayFailed(context) : replayOne(context, id);
    },
  },
  {
    words: ["webhooks", "summary"],
    summary: "Count the listed deliveries by source and outcome.",
    options: [...TIMES.filter(({ name }) => name !== "reason"), ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const { webhooks } = await context.account();
      const times = { since: context.option("since"), until: context.option("until") };
      context.print(await webhooks.summary(times), ({ sources }) =>
        table(
          ["source", "accepted", "duplicate", "rejected", "failed", "failing", "last error"],
          sources.map((row) => [
            row.source,
            String(row.accepted),
            String(row.duplicate),
            String(row.rejected + row.unlisted_rejected),
            String(row.failed),
            String(row.failing),
            row.last_error ?? "",
          ]),
          "no deliveries",
        ),
      );
    },
  },
  webhooksListen,
  ...webhookRouteCommands,
];

async function replayOne(context: CommandContext, id: string): Promise<number> {
  const { webhooks } = await context.account();
  const result = await webhooks.replay(id);
  context.print(result, ({ status, event_id, error }) =>
    error === null
      ? `${status} as ${event_id}\n`
      : `${status}\n${error.stack ?? `${error.name}: ${error.message}`}\n`,
  );
  return result.error === null ? 0 : 1;
}

/** Step by step: one request replays a bounded number. */
async function replayFailed(context: CommandContext): Promise<number> {
  const { webhooks } = await context.account();
  const sum = { replayed: 0, skipped: 0, failed: [] as { id: string; error: string }[] };
  let cursor: string | undefined;
  do {
    const step = await webhooks.replayFailed({
      source: context.option("source"),
      instance: context.option("instance"),
      type: context.option("type"),
      reason: context.option("reason"),
      since: context.option("since"),
      until: context.option("until"),
      cursor,
    });
    sum.replayed += step.replayed;
    sum.skipped += step.skipped;
    sum.failed.push(...step.failed);
    cursor = step.cursor ?? undefined;
  } while (cursor !== undefined);
  context.print(sum, ({ replayed, skipped, failed }) =>
    [
      `replayed ${replayed}, failed ${failed.length}, skipped ${skipped}`,
      ...failed.map(({ id, error }) => `${id}  ${error}`),
      "",
    ].join("\n"),
  );
  return sum.failed.length > 0 ? 1 : 0;
}

async function tail(context: CommandContext): Promise<void> {
  const limit = parseLimit(context) ?? Number.POSITIVE_INFINITY;
  const [newest] = await readDeliveries(context, { limit: 1 });
  let after = newest?.id ?? "0";
  let printed = 0;
  const signal = stopSignal();
  while (printed < limit && !signal.aborted) {
    const rows = await readDeliveries(context, { after });
    for (const row of rows.slice(0, limit - printed)) {
      context.out.write(context.isJson ? `${JSON.stringify(row)}\n` : rowLine(toCells(row)));
      printed += 1;
    }
    after = rows.at(-1)?.id ?? after;
    // The abort ends the pause and the loop; it is not an error.
    if (rows.length < MAX_PAGE) await sleep(TAIL_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function readDeliveries(context: CommandContext, query: DeliveryQuery): Promise<readonly Delivery[]> {
  const { webhooks } = await context.account();
  const page = await webhooks
    .deliveries({
      source: context.option("source"),
      // The service validates the status.
      status: context.option("status") as DeliveryStatus | undefined,
      instance: context.option("instance"),
      type: context.option("type"),
      reason: context.option("reason"),
      since: context.option("since"),
      until: context.option("until"),
      unresolved: context.hasSwitch("unresolved") ? true : undefined,
      ...query,
    })
    .page();
  return page.items;
}

function toCells(row: Delivery): string[] {
  return [
    row.id,
    row.received_at,
    row.source,
    row.status === "rejected" || row.status === "failed"
      ? `${row.status} (${row.reason ?? row.http_status})`
      : row.status,
    row.type ?? "-",
    row.instance ?? "-",
    row.title ?? "",
    row.error === null ? "" : `${row.error.name}: ${row.error.message}`,
  ];
}

function parseLimit(context: CommandContext, max = Number.MAX_SAFE_INTEGER): number | undefined {
  const text = context.option("limit");
  if (text === undefined) return undefined;
  const limit = Number(text);
  if (!/^\d+$/.test(text) || limit < 1)
    throw new UsageError(`--limit: expected a number of at least 1, found "${text}"`);
  if (limit > max) throw new UsageError(`--limit: at most ${max}`);
  return limit;
}
