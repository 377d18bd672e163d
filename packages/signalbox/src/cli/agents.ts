/** `signalbox agents …`: the management interface of agents, and calls of their methods. */
import { once } from "node:events";
import { plainLine } from "../core/plain-text.ts";
import { type Command, type CommandContext, UsageError } from "./command.ts";
import { ManagementError } from "./management-client.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { table } from "./table.ts";

interface ShownAgent {
  readonly name: string;
  readonly class_name: string;
  readonly callable: readonly { readonly name: string }[];
  readonly instance_count: number;
}

interface ShownInstance {
  readonly agent: string;
  readonly name: string;
  readonly created_at: string;
  readonly last_active_at: string;
  readonly in_memory: boolean;
  readonly connection_count: number;
}

interface ShownDetail extends ShownInstance {
  readonly state: unknown;
  readonly queue_count: number;
  readonly dead_letter_count: number;
  readonly schedule_count: number;
  readonly next_due_at: string | null;
}

interface ShownItem {
  readonly id: string;
  readonly callback: string;
  readonly payload: unknown;
  readonly attempts: number;
  readonly created_at: string;
  readonly last_error?: string | null;
  readonly error?: string;
}

interface ShownSchedule {
  readonly id: string;
  readonly type: string;
  readonly callback: string;
  readonly due_at: string;
  readonly cron: string | null;
  readonly interval_seconds: number | null;
}

const OPTIONS = [ACCOUNT_OPTION, ...CLIENT_OPTIONS];
const INSTANCE_POSITIONALS = ["<agent>", "<name>"];

export const agentCommands: readonly Command[] = [
  {
    words: ["agents", "list"],
    summary: "List the agents and their callable methods.",
    options: OPTIONS,
    async run(context) {
      const agents = await (await context.client()).list<ShownAgent>(agentsPath(context));
      context.print(agents, (rows) =>
        table(
          ["agent", "class", "instances", "callable"],
          rows.map((row) => [
            row.name,
            row.class_name,
            String(row.instance_count),
            row.callable.map(({ name }) => name).join(", "),
          ]),
          "no agents; name a file that exports some with --agents",
        ),
      );
    },
  },
  {
    words: ["agents", "instances"],
    positionals: ["<agent>"],
    summary: "List an agent's instances.",
    options: [
      { name: "search", value: "TEXT", summary: "only names that contain the text" },
      {
        name: "tag",
        value: "FILTER",
        summary: "only instances with the tag (repeatable)",
        isRepeatable: true,
      },
      ...OPTIONS,
    ],
    async run(context) {
      const query = new URLSearchParams();
      const search = context.option("search");
      if (search !== undefined) query.set("search", search);
      for (const tag of context.options("tag")) query.append("tag", tag);
      const path = `${agentsPath(context)}/${segment(context, 0)}/instances${query.size > 0 ? `?${query.toString()}` : ""}`;
      const instances = await (await context.client()).list<ShownInstance>(path);
      context.print(instances, (rows) =>
        table(
          ["name", "last active", "created", "in memory", "connections"],
          rows.map((row) => [
            row.name,
            row.last_active_at,
            row.created_at,
            row.in_memory ? "yes" : "no",
            String(row.connection_count),
          ]),
          "no instances",
        ),
      );
    },
  },
  {
    words: ["agents", "show"],
    positionals: INSTANCE_POSITIONALS,
    summary: "Show an instance: state, counts, last activity.",
    options: OPTIONS,
    async run(context) {
      const detail = await (await context.client()).request<ShownDetail>("GET", instancePath(context));
      context.print(detail, showDetail);
    },
  },
  {
    words: ["agents", "call"],
    positionals: ["<agent>", "<name>", "<method>", "[arguments...]"],
    summary: "Call a method; each argument is JSON, or text when it is not.",
    options: [
      {
        ...ACCOUNT_OPTION,
        summary: "account of the instance (default: the token's; for the root token, default)",
      },
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      const [, , method = "", ...args] = context.positionals;
      const account = context.option("account");
      const query = account === undefined ? "" : `?account=${encodeURIComponent(account)}`;
      const path = `/agents/${segment(context, 0)}/${segment(context, 1)}/rpc/${encodeURIComponent(method)}${query}`;
      const result = await (await context.client()).request("POST", path, args.map(parseArgument));
      context.print(result, (value) => `${JSON.stringify(value, null, 2)}\n`);
    },
  },
  {
    words: ["agents", "queue"],
    positionals: INSTANCE_POSITIONALS,
    summary: "List an instance's waiting queue items.",
    options: OPTIONS,
    run: (context) => printItems(context, "queue", "the queue is empty"),
  },
  {
    words: ["agents", "dead-letters"],
    positionals: INSTANCE_POSITIONALS,
    summary: "List work that used up its attempts.",
    options: OPTIONS,
    run: (context) => printItems(context, "dead-letters", "no dead letters"),
  },
  {
    words: ["agents", "schedules"],
    positionals: INSTANCE_POSITIONALS,
    summary: "List an instance's schedules.",
    options: OPTIONS,
    async run(context) {
      const schedules = await (
        await context.client()
      ).list<ShownSchedule>(`${instancePath(context)}/schedules`);
      context.print(schedules, (rows) =>
        table(
          ["id", "method", "due", "repeats"],
          rows.map((row) => [row.id, row.callback, row.due_at, repeats(row)]),
          "no schedules",
        ),
      );
    },
  },
  {
    words: ["agents", "replay"],
    positionals: ["<agent>", "<name>", "[ids...]"],
    summary: "Put dead letters back in the queue: those named, or all with --all.",
    options: [{ name: "all", summary: "every dead letter of the instance" }, ...OPTIONS],
    async run(context) {
      const ids = context.positionals.slice(2);
      if (ids.length > 0 === context.hasSwitch("all"))
        throw new UsageError("name dead letters, or give --all");
      const result = await (
        await context.client()
      ).request<{ replayed: number }>(
        "POST",
        `${instancePath(context)}/dead-letters/replay`,
        ids.length > 0 ? { ids } : {},
      );
      context.print(result, ({ replayed }) => `replayed ${replayed}\n`);
      return ids.length > 0 && result.replayed < ids.length ? 1 : 0;
    },
  },
  {
    words: ["agents", "sql"],
    positionals: ["<agent>", "<name>", "<statement>"],
    summary: "Run one reading statement on a copy of an instance's database.",
    options: OPTIONS,
    async run(context) {
      const result = await (
        await context.client()
      ).request<{ rows: Record<string, unknown>[]; truncated: boolean }>(
        "POST",
        `${instancePath(context)}/sql`,
        {
          sql: context.positionals[2],
        },
      );
      context.print(result, ({ rows, truncated }) => {
        const columns = Object.keys(rows[0] ?? {});
        const cells = rows.map((row) => columns.map((column) => cell(row[column])));
        return table(columns, cells, "no rows") + (truncated ? "only the first rows are shown\n" : "");
      });
    },
  },
  {
    words: ["agents", "tail"],
    positionals: INSTANCE_POSITIONALS,
    summary: "Follow what an instance does, until interrupted.",
    options: OPTIONS,
    run: tail,
  },
  {
    words: ["agents", "destroy"],
    positionals: INSTANCE_POSITIONALS,
    summary: "Destroy an instance and everything it stored.",
    options: OPTIONS,
    async run(context) {
      const result = await (await context.client()).request<ShownInstance>("DELETE", instancePath(context));
      context.print(result, ({ agent, name }) => `destroyed ${agent}/${name}\n`);
    },
  },
];

async function printItems(context: CommandContext, list: string, whenEmpty: string): Promise<void> {
  const items = await (await context.client()).list<ShownItem>(`${instancePath(context)}/${list}`);
  context.print(items, (rows) =>
    table(
      ["id", "method", "attempts", "created", "payload", "error"],
      rows.map((row) => [
        row.id,
        row.callback,
        String(row.attempts),
        row.created_at,
        cell(row.payload),
        row.error ?? row.last_error ?? "",
      ]),
      whenEmpty,
    ),
  );
}

/** One line an event: JSON with `--json`, else time, type and detail. Ends with the server or with an interrupt. */
async function tail(context: CommandContext): Promise<number> {
  const client = await context.client();
  const response = await client.fetch("GET", `${instancePath(context)}/events`, undefined, {
    accept: "text/event-stream",
  });
  if (!response.ok || response.body === null) {
    throw new ManagementError(response.status, 0, `the server answered ${response.status}`);
  }
  const body = response.body.pipeThrough(new TextDecoderStream());
  const reader = body.getReader();
  const interrupted = once(process, "SIGINT").then(() => reader.cancel());
  // Whoever waits for it hears of it; nobody may be waiting yet.
  interrupted.catch(() => undefined);
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return 0;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) printEvent(context, block);
  }
}

function printEvent(context: CommandContext, block: string): void {
  const data = /^data: (.*)$/m.exec(block)?.[1];
  const type = /^event: (.*)$/m.exec(block)?.[1];
  if (data === undefined || type === undefined) return;
  if (type === "missed") {
    context.err.write(`missed ${plainLine(data)} events\n`);
    return;
  }
  if (context.isJson) {
    context.out.write(`${data}\n`);
    return;
  }
  const event = JSON.parse(data) as { timestamp: string; detail: Record<string, unknown> };
  const detail = Object.entries(event.detail).map(([key, value]) => `${key}=${cell(value)}`);
  context.out.write(`${plainLine(`${event.timestamp} ${type.padEnd(10)} ${detail.join(" ")}`)}\n`);
}

function showDetail(detail: ShownDetail): string {
  return [
    `${detail.agent}/${detail.name}`,
    `created      ${detail.created_at}`,
    `last active  ${detail.last_active_at}`,
    `in memory    ${detail.in_memory ? "yes" : "no"}`,
    `connections  ${detail.connection_count}`,
    `queue        ${detail.queue_count}`,
    `dead letters ${detail.dead_letter_count}`,
    `schedules    ${detail.schedule_count}`,
    `next due     ${detail.next_due_at ?? "-"}`,
    `state        ${JSON.stringify(detail.state, null, 2)}`,
    "",
  ].join("\n");
}

function repeats(schedule: ShownSchedule): string {
  if (schedule.cron !== null) return schedule.cron;
  return schedule.interval_seconds === null ? "once" : `every ${schedule.interval_seconds} s`;
}

function cell(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

function parseArgument(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function agentsPath(context: CommandContext): string {
  return `/accounts/${encodeURIComponent(context.option("account") ?? "default")}/agents`;
}

function instancePath(context: CommandContext): string {
  return `${agentsPath(context)}/${segment(context, 0)}/instances/${segment(context, 1)}`;
}

function segment(context: CommandContext, index: number): string {
  return encodeURIComponent(context.positionals[index] ?? "");
}
