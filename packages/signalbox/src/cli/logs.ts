/** `signalbox logs …` */
import { setTimeout as sleep } from "node:timers/promises";
import type { Call, CallFilter, FoundCall, LogsApi } from "@signalbox/client";
import { plainLine, plainText } from "../core/plain-text.ts";
import { ulidFloor, ulidTime } from "../core/ulid.ts";
import { type Command, type CommandContext, type CommandOption, UsageError } from "./command.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { rowLine, table, toCell } from "./table.ts";

const GATEWAY_OPTION: CommandOption = { name: "gateway", value: "ID", summary: "gateway (default: default)" };
const FILTER_OPTIONS: readonly CommandOption[] = [
  { name: "provider", value: "SLUG", summary: "only calls to this provider" },
  { name: "model", value: "NAME", summary: "only calls of this model" },
  { name: "errors", summary: "only calls that failed" },
  { name: "search", value: "TEXT", summary: "only calls with this text in their metadata" },
];

const MAX_PER_PAGE = 1000;
const MAX_FOUND_PER_PAGE = 100;
const DEFAULT_ROWS = 20;
const POLL_MS = 1000;
/** A call gets its id when it begins and is stored when it ends. `tail` reads again from this long before the newest id to find slow calls. */
const MAX_CALL_MS = 10 * 60_000;

export const logsCommands: readonly Command[] = [
  {
    words: ["logs", "list"],
    summary: "List the stored calls of a gateway, newest first.",
    options: [
      {
        name: "limit",
        value: "N",
        summary: `number of rows, at most ${MAX_PER_PAGE} (default ${DEFAULT_ROWS})`,
      },
      ...FILTER_OPTIONS,
      { name: "text", value: "TEXT", summary: "only calls with this text in their prompt or answer" },
      GATEWAY_OPTION,
      { name: "all-gateways", summary: "the calls of all gateways" },
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      if (context.hasSwitch("all-gateways") || context.option("text") !== undefined) {
        await listFound(context);
        return;
      }
      const rows = await readCalls(context, rowLimit(context) ?? DEFAULT_ROWS);
      context.print(rows, (calls) => table(COLUMNS, calls.map(toCells), "no calls"));
    },
  },
  {
    words: ["logs", "show"],
    positionals: ["<id>"],
    summary: "Show a stored call, its request body or its response body.",
    options: [
      { name: "request", summary: "print the request body" },
      { name: "response", summary: "print the response body" },
      GATEWAY_OPTION,
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      const id = context.positionals[0] ?? "";
      if (context.hasSwitch("request") && context.hasSwitch("response")) {
        throw new UsageError("give --request or --response, not both");
      }
      const logs = await logsOf(context);
      for (const side of ["request", "response"] as const) {
        if (!context.hasSwitch(side)) continue;
        const text = await (await logs[side](id)).text();
        const whole = text.endsWith("\n") ? text : `${text}\n`;
        // Unchanged for a file or a pipe. A terminal would interpret control characters.
        context.out.write(context.out.isTTY === true ? plainText(whole) : whole);
        return;
      }
      const call = await logs.get(id);
      context.print(call, (shown) =>
        Object.entries(shown)
          .map(([name, value]) => `${name.padEnd(24)}${plainLine(toCell(value))}\n`)
          .join(""),
      );
    },
  },
  {
    words: ["logs", "tail"],
    summary: "Print calls as they are stored, until interrupted.",
    options: [
      { name: "limit", value: "N", summary: "stop after this many rows" },
      { name: "interval", value: "MS", summary: `milliseconds between two requests (default ${POLL_MS})` },
      ...FILTER_OPTIONS,
      GATEWAY_OPTION,
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    run: tail,
  },
];

/** The list with prompts: of all gateways, or of calls with a text. */
async function listFound(context: CommandContext): Promise<void> {
  if (context.hasSwitch("all-gateways") && context.option("gateway") !== undefined)
    throw new UsageError("give --gateway or --all-gateways, not both");
  const limit = rowLimit(context) ?? DEFAULT_ROWS;
  const { allLogs } = await context.account();
  const selection = {
    filters: filtersOf(context),
    search: context.option("search"),
    q: context.option("text"),
    ...(context.hasSwitch("all-gateways") ? {} : { gateway_id: [context.option("gateway") ?? "default"] }),
  };
  const rows: FoundCall[] = [];
  // A page of a search can be short although more follows.
  for await (const call of allLogs.list({ ...selection, limit: Math.min(limit, MAX_FOUND_PER_PAGE) })) {
    rows.push(call);
    if (rows.length === limit) break;
  }
  context.print(rows, (calls) => table(FOUND_COLUMNS, calls.map(toFoundCells), "no calls"));
}

async function tail(context: CommandContext): Promise<void> {
  const intervalMs = count(context, "interval") ?? POLL_MS;
  let left = count(context, "limit") ?? Number.POSITIVE_INFINITY;
  const seen = new Set<string>();
  const [newestBefore] = await readCalls(context, 1);
  let newest = newestBefore?.id ?? ulidFloor(0);
  // Calls that are stored already are not printed.
  for (const { id } of await readSince(context, newest)) seen.add(id);
  while (left > 0) {
    await sleep(intervalMs);
    const found = await readSince(context, newest);
    const fresh = found.filter(({ id }) => !seen.has(id)).toReversed();
    if (fresh.length === MAX_PER_PAGE) {
      context.err.write(
        `signalbox: more than ${MAX_PER_PAGE} calls since the last request, some are not shown\n`,
      );
    }
    for (const call of fresh.slice(0, left)) {
      context.print(call, (shown) => rowLine(toCells(shown)));
    }
    left -= fresh.length;
    newest = found[0]?.id ?? newest;
    seen.clear();
    for (const { id } of found) seen.add(id);
  }
}

/** The calls that began at most `MAX_CALL_MS` before the given one, newest first. */
function readSince(context: CommandContext, id: string): Promise<readonly Call[]> {
  const begin = ulidFloor(Math.max(0, ulidTime(id) - MAX_CALL_MS));
  return readCalls(context, MAX_PER_PAGE, [{ key: "id", operator: "gt", value: [begin] }]);
}

async function readCalls(
  context: CommandContext,
  count: number,
  filters: readonly CallFilter[] = [],
): Promise<readonly Call[]> {
  const logs = await logsOf(context);
  const selection = {
    filters: [...filters, ...filtersOf(context)],
    search: context.option("search"),
    per_page: count,
  };
  return (await logs.list(selection).page()).items;
}

function filtersOf(context: CommandContext): CallFilter[] {
  const filters: CallFilter[] = [];
  for (const key of ["provider", "model"]) {
    const value = context.option(key);
    if (value !== undefined) filters.push({ key, operator: "eq", value: [value] });
  }
  if (context.hasSwitch("errors")) filters.push({ key: "success", operator: "eq", value: [false] });
  return filters;
}

async function logsOf(context: CommandContext): Promise<LogsApi> {
  return (await context.account()).logs(context.option("gateway") ?? "default");
}

function rowLimit(context: CommandContext): number | undefined {
  const limit = count(context, "limit");
  if (limit !== undefined && limit > MAX_PER_PAGE) throw new UsageError(`--limit: at most ${MAX_PER_PAGE}`);
  return limit;
}

function count(context: CommandContext, name: string): number | undefined {
  const text = context.option(name);
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,8}$/.test(text))
    throw new UsageError(`--${name}: expected a whole number above 0, found ${text}`);
  return Number(text);
}

/** By importance: a narrow terminal leaves out the last ones. */
const FOUND_COLUMNS = [
  "time",
  "id",
  "gateway",
  "status",
  "model",
  "prompt",
  "ms",
  "cost",
  "provider",
  "cached",
];

function toFoundCells(call: FoundCall): string[] {
  return [
    call.created_at,
    call.id,
    call.gateway_id,
    String(call.status_code),
    call.model === "" ? "-" : call.model,
    shorten(call.prompt ?? "-"),
    String(Math.round(call.duration)),
    costOf(call),
    call.provider,
    call.cached ? "yes" : "no",
  ];
}

const MAX_PROMPT = 60;

function shorten(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length <= MAX_PROMPT ? line : `${line.slice(0, MAX_PROMPT - 1)}…`;
}

function costOf(call: Call): string {
  return call.cost === undefined ? "-" : `$${call.cost.toFixed(6)}`;
}

const COLUMNS = ["time", "id", "status", "model", "ms", "cost", "provider", "tokens in", "out", "cached"];

function toCells(call: Call): string[] {
  return [
    call.created_at,
    call.id,
    String(call.status_code),
    call.model === "" ? "-" : call.model,
    String(Math.round(call.duration)),
    costOf(call),
    call.provider,
    String(call.tokens_in),
    String(call.tokens_out),
    call.cached ? "yes" : "no",
  ];
}
