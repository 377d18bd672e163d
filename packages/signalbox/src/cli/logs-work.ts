/** `signalbox logs search`, `export`, `curl` and `replay` */
import type { CallFilter, FoundCall, FoundSelection } from "@signalbox/client";
import { plainText } from "../core/plain-text.ts";
import { type Command, type CommandContext, type CommandOption, UsageError } from "./command.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { copyBody } from "./read-body.ts";
import { table } from "./table.ts";

const MAX_ROWS = 500;
const DEFAULT_ROWS = 20;

const SELECTION: readonly CommandOption[] = [
  {
    name: "gateway",
    value: "ID",
    summary: "only this gateway (repeatable; default: all)",
    isRepeatable: true,
  },
  { name: "provider", value: "SLUG", summary: "only calls to this provider" },
  { name: "model", value: "NAME", summary: "only calls of this model" },
  { name: "errors", summary: "only calls that failed" },
  { name: "since", value: "TIME", summary: "only calls from this time on (ISO 8601)" },
  { name: "until", value: "TIME", summary: "only calls before this time" },
  ACCOUNT_OPTION,
  ...CLIENT_OPTIONS,
];
const ONE: readonly CommandOption[] = [
  { name: "gateway", value: "ID", summary: "gateway of the call (default: default)" },
  ACCOUNT_OPTION,
  ...CLIENT_OPTIONS,
];

export const logsWorkCommands: readonly Command[] = [
  {
    words: ["logs", "search"],
    positionals: ["[text]"],
    summary:
      "Find a text in prompts and answers of all gateways, newest first; without a text, list all calls.",
    options: [
      { name: "limit", value: "N", summary: `number of rows, at most ${MAX_ROWS} (default ${DEFAULT_ROWS})` },
      ...SELECTION,
    ],
    async run(context) {
      const limit = rowLimit(context);
      const { allLogs } = await context.account();
      const found = await allLogs
        .list({ ...selectionOf(context), q: context.positionals[0], limit })
        .all(limit);
      context.print(found, (calls) => table(COLUMNS, calls.map(toCells), "no calls"));
    },
  },
  {
    words: ["logs", "export"],
    summary: "Write stored calls of all gateways to standard output, oldest first, as NDJSON or CSV.",
    options: [
      { name: "format", value: "FORMAT", summary: "ndjson (default) or csv", values: ["ndjson", "csv"] },
      { name: "bodies", summary: "with request and response bodies (NDJSON)" },
      { name: "text", value: "TEXT", summary: "only calls with this text in prompt or answer" },
      ...SELECTION,
    ],
    async run(context) {
      const format = context.option("format") ?? "ndjson";
      if (format !== "ndjson" && format !== "csv") throw new UsageError("--format: expected ndjson or csv");
      const { allLogs } = await context.account();
      const selection = {
        ...selectionOf(context),
        q: context.option("text"),
        format,
        bodies: context.hasSwitch("bodies"),
      } as const;
      await copyBody(await allLogs.export(selection), context.out);
    },
  },
  {
    words: ["logs", "curl"],
    positionals: ["<id>"],
    summary: "Print a stored call as a curl command; credentials are variables.",
    options: ONE,
    async run(context) {
      const text = await (await logsOf(context)).curl(context.positionals[0] ?? "");
      context.out.write(context.out.isTTY === true ? plainText(text) : text);
    },
  },
  {
    words: ["logs", "replay"],
    positionals: ["<id>"],
    summary: "Send the request of a stored call again. It is a call of this token, with its limits and cost.",
    options: [{ name: "model", value: "PROVIDER/MODEL", summary: "send it to this model instead" }, ...ONE],
    async run(context) {
      const id = context.positionals[0] ?? "";
      const result = await (await logsOf(context)).replay(id, { model: context.option("model") });
      context.print(
        result,
        ({ status, log_id: logId, answer }) => `status ${status}, log ${logId ?? "none"}\n${answer}\n`,
      );
      return result.success ? 0 : 1;
    },
  },
  {
    words: ["logs", "push"],
    summary:
      "Copy stored calls to the configured bucket now (gateway.logPush); with --status only show the state.",
    options: [{ name: "status", summary: "copy nothing" }, ...CLIENT_OPTIONS],
    async run(context) {
      const client = await context.client();
      if (!context.hasSwitch("status")) await client.request("POST", "/log_push/run", { timeoutMs: 0 });
      const { result } = await client.request<PushState>("GET", "/log_push");
      context.print(result, ({ enabled, pushed_at: at, calls, last_error: error }) =>
        enabled
          ? `${calls} calls copied, last time ${at ?? "never"}${error === null ? "" : `; last error: ${error}`}\n`
          : "gateway.logPush is not configured\n",
      );
    },
  },
];

interface PushState {
  readonly enabled: boolean;
  readonly pushed_at: string | null;
  readonly calls: number;
  readonly last_error: string | null;
}

async function logsOf(context: CommandContext) {
  return (await context.account()).logs(context.option("gateway") ?? "default");
}

function selectionOf(context: CommandContext): FoundSelection {
  const filters: CallFilter[] = [];
  for (const key of ["provider", "model"]) {
    const value = context.option(key);
    if (value !== undefined) filters.push({ key, operator: "eq", value: [value] });
  }
  if (context.hasSwitch("errors")) filters.push({ key: "success", operator: "eq", value: [false] });
  for (const [name, operator] of [
    ["since", "gt"],
    ["until", "lt"],
  ] as const) {
    const value = context.option(name);
    if (value === undefined) continue;
    const time = Date.parse(value);
    if (Number.isNaN(time)) throw new UsageError(`--${name}: expected an ISO 8601 time, found ${value}`);
    // `gt` excludes the time itself.
    filters.push({ key: "created_at", operator, value: [operator === "gt" ? time - 1 : time] });
  }
  return { filters, gateway_id: context.options("gateway") };
}

function rowLimit(context: CommandContext): number {
  const text = context.option("limit") ?? String(DEFAULT_ROWS);
  if (!/^[1-9]\d{0,2}$/.test(text) || Number(text) > MAX_ROWS) {
    throw new UsageError(`--limit: expected a whole number from 1 to ${MAX_ROWS}, found ${text}`);
  }
  return Number(text);
}

const COLUMNS = ["time", "gateway", "id", "status", "model", "prompt", "answer"];
const PREVIEW = 40;

function toCells(call: FoundCall): string[] {
  const preview = (text: string | null) => (text === null ? "-" : text.slice(0, PREVIEW));
  return [
    call.created_at,
    call.gateway_id,
    call.id,
    String(call.status_code),
    call.model === "" ? "-" : call.model,
    preview(call.prompt),
    preview(call.answer),
  ];
}
