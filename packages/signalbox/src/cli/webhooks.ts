/** `signalbox webhooks …` */
import { webhooksSend } from "./webhooks-send.ts";
import { type Command, type CommandContext, type CommandOption, UsageError } from "./command.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { rowLine, table } from "./table.ts";

interface ShownSource {
  readonly name: string;
  readonly scheme: string;
  readonly path: string;
  readonly agent: string;
  readonly secret_variable: string;
  readonly secrets: number;
}

interface ShownDelivery {
  readonly id: string;
  readonly source: string;
  readonly status: string;
  readonly reason: string | null;
  readonly http_status: number;
  readonly received_at: string;
  readonly duration_ms: number;
  readonly type: string | null;
  readonly title: string | null;
  readonly agent: string;
  readonly instance: string | null;
}

/** How often `tail` asks for news. */
const TAIL_INTERVAL_MS = 500;
const MAX_PAGE = 100;

const FILTERS: readonly CommandOption[] = [
  { name: "source", value: "NAME", summary: "only this source" },
  { name: "status", value: "STATUS", summary: "only accepted, duplicate, rejected or failed ones" },
  { name: "instance", value: "NAME", summary: "only those of this instance" },
  { name: "type", value: "TYPE", summary: "only this event type" },
];

export const webhookCommands: readonly Command[] = [
  webhooksSend,
  {
    words: ["webhooks", "sources"],
    summary: "List webhook sources, their addresses and the variables their secrets come from.",
    options: [ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const sources = await (await context.client()).list<ShownSource>(`${webhooksPath(context)}/sources`);
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
    summary: "List deliveries, newest first: accepted, duplicate, rejected (and why), failed.",
    options: [
      ...FILTERS,
      { name: "limit", value: "COUNT", summary: `how many (1 to ${MAX_PAGE}, default 50)` },
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      const limit = parseLimit(context) ?? 50;
      const client = await context.client();
      const rows = await client.request<ShownDelivery[]>(
        "GET",
        deliveriesPath(context, { limit: String(limit) }),
      );
      context.print(rows, (shown) =>
        table(
          ["id", "time", "source", "status", "type", "instance", "title"],
          shown.map(toCells),
          "no deliveries",
        ),
      );
    },
  },
  {
    words: ["webhooks", "show"],
    positionals: ["<id>"],
    summary: "Show one delivery with its headers and body.",
    options: [ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const client = await context.client();
      const delivery = await client.request("GET", deliveryPath(context));
      context.print(delivery, (shown) => `${JSON.stringify(shown, null, 2)}\n`);
    },
  },
  {
    words: ["webhooks", "tail"],
    summary: "Follow deliveries as they come; end it with Ctrl-C.",
    options: [
      ...FILTERS,
      { name: "limit", value: "COUNT", summary: "stop after so many" },
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    run: tail,
  },
  {
    words: ["webhooks", "replay"],
    positionals: ["<id>"],
    summary: "Hand a stored delivery to its agent again.",
    options: [ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const client = await context.client();
      const result = await client.request<{ status: string; event_id: string }>(
        "POST",
        `${deliveryPath(context)}/replay`,
      );
      context.print(result, ({ status, event_id }) => `${status} as ${event_id}\n`);
    },
  },
];

async function tail(context: CommandContext): Promise<void> {
  const client = await context.client();
  const limit = parseLimit(context) ?? Number.POSITIVE_INFINITY;
  const [newest] = await client.request<ShownDelivery[]>("GET", deliveriesPath(context, { limit: "1" }));
  let after = newest?.id ?? "0";
  let printed = 0;
  const stop = stopSignal();
  while (printed < limit && !stop.aborted) {
    const rows = await client.request<ShownDelivery[]>("GET", deliveriesPath(context, { after }));
    for (const row of rows.slice(0, limit - printed)) {
      context.out.write(context.isJson ? `${JSON.stringify(row)}\n` : rowLine(toCells(row)));
      printed += 1;
    }
    after = rows.at(-1)?.id ?? after;
    if (rows.length < MAX_PAGE) await pause(TAIL_INTERVAL_MS, stop);
  }
}

function stopSignal(): AbortSignal {
  const controller = new AbortController();
  process.once("SIGINT", () => controller.abort());
  process.once("SIGTERM", () => controller.abort());
  return controller.signal;
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function toCells(row: ShownDelivery): string[] {
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
  ];
}

function parseLimit(context: CommandContext): number | undefined {
  const text = context.option("limit");
  if (text === undefined) return undefined;
  const limit = Number(text);
  if (!/^\d+$/.test(text) || limit < 1)
    throw new UsageError(`--limit: expected a number of at least 1, found "${text}"`);
  return Math.min(limit, MAX_PAGE);
}

function webhooksPath(context: CommandContext): string {
  return `/accounts/${encodeURIComponent(context.option("account") ?? "default")}/webhooks`;
}

function deliveriesPath(context: CommandContext, extra: Record<string, string>): string {
  const query = new URLSearchParams(extra);
  for (const { name } of FILTERS) {
    const value = context.option(name);
    if (value !== undefined) query.set(name, value);
  }
  return `${webhooksPath(context)}/deliveries?${query.toString()}`;
}

function deliveryPath(context: CommandContext): string {
  return `${webhooksPath(context)}/deliveries/${encodeURIComponent(context.positionals[0] ?? "")}`;
}
