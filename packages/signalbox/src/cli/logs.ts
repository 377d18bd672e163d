/** `signalbox logs …` */
import { plainLine, plainText } from "../core/plain-text.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { ulidFloor, ulidTime } from "../core/ulid.ts";
import { type Command, type CommandContext, type CommandOption, UsageError } from "./command.ts";
import { ManagementError } from "./management-client.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { rowLine, table } from "./table.ts";

interface ShownCall {
  readonly id: string;
  readonly created_at: string;
  readonly provider: string;
  readonly model: string;
  readonly path: string;
  readonly status_code: number;
  readonly success: boolean;
  readonly cached: boolean;
  readonly duration: number;
  readonly tokens_in: number;
  readonly tokens_out: number;
  readonly cost?: number;
  readonly [field: string]: unknown;
}

const GATEWAY_OPTION: CommandOption = { name: "gateway", value: "ID", summary: "gateway (default: default)" };
const FILTER_OPTIONS: readonly CommandOption[] = [
  { name: "provider", value: "SLUG", summary: "only calls to this provider" },
  { name: "model", value: "NAME", summary: "only calls of this model" },
  { name: "errors", summary: "only calls that failed" },
  { name: "search", value: "TEXT", summary: "only calls with this text in their metadata" },
];

const MAX_PER_PAGE = 1000;
const DEFAULT_ROWS = 20;
const POLL_MS = 1000;
/** A call's id is made when it begins and shows up when it ends, so slow calls appear behind newer ones; this is how far back we look. */
const LOOK_BACK_MS = 10 * 60_000;

export const logsCommands: readonly Command[] = [
  {
    words: ["logs", "list"],
    summary: "List a gateway's stored calls, newest first.",
    options: [
      { name: "limit", value: "N", summary: `rows to show, up to ${MAX_PER_PAGE} (default ${DEFAULT_ROWS})` },
      ...FILTER_OPTIONS,
      GATEWAY_OPTION,
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      const rows = await readCalls(context, { per_page: String(rowLimit(context) ?? DEFAULT_ROWS) });
      context.print(rows, (calls) => table(COLUMNS, calls.map(toCells), "no calls"));
    },
  },
  {
    words: ["logs", "show"],
    positionals: ["<id>"],
    summary: "Show one stored call, or one of its bodies.",
    options: [
      { name: "request", summary: "print the request body" },
      { name: "response", summary: "print the response body" },
      GATEWAY_OPTION,
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      const path = `${logsPath(context)}/${encodeURIComponent(context.positionals[0] ?? "")}`;
      const client = await context.client();
      if (context.hasSwitch("request") && context.hasSwitch("response")) {
        throw new UsageError("give --request or --response, not both");
      }
      for (const side of ["request", "response"] as const) {
        if (!context.hasSwitch(side)) continue;
        const response = await client.fetch("GET", `${path}/${side}`);
        const text = await response.text();
        if (!response.ok)
          throw new ManagementError(response.status, 0, `no stored ${side} body for this call`);
        const whole = text.endsWith("\n") ? text : `${text}\n`;
        // As it was sent into a file or another program; a terminal would act on what a stranger put into it.
        context.out.write(context.out.isTTY === true ? plainText(whole) : whole);
        return;
      }
      const call = await client.request<ShownCall>("GET", path);
      context.print(call, (shown) =>
        Object.entries(shown)
          .map(
            ([name, value]) =>
              `${name.padEnd(24)}${plainLine(typeof value === "string" ? value : (JSON.stringify(value) ?? ""))}\n`,
          )
          .join(""),
      );
    },
  },
  {
    words: ["logs", "tail"],
    summary: "Print calls as they end, until interrupted.",
    options: [
      { name: "limit", value: "N", summary: "stop after this many rows" },
      { name: "interval", value: "MS", summary: `time between two looks (default ${POLL_MS})` },
      ...FILTER_OPTIONS,
      GATEWAY_OPTION,
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    run: tail,
  },
];

async function tail(context: CommandContext): Promise<void> {
  const intervalMs = count(context, "interval") ?? POLL_MS;
  let left = count(context, "limit") ?? Number.POSITIVE_INFINITY;
  const seen = new Set<string>();
  const [newestBefore] = await readCalls(context, { per_page: "1" });
  let newest = newestBefore?.id ?? ulidFloor(0);
  // What is there already is not news; later looks go back behind it only for calls that had not ended.
  for (const { id } of await readSince(context, newest)) seen.add(id);
  while (left > 0) {
    await sleep(intervalMs);
    const found = await readSince(context, newest);
    const fresh = found.filter(({ id }) => !seen.has(id)).toReversed();
    if (fresh.length === MAX_PER_PAGE) {
      context.err.write(
        `signalbox: more than ${MAX_PER_PAGE} calls since the last look, some are not shown\n`,
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

/** Newest first: the calls from a while before the given one on. */
function readSince(context: CommandContext, id: string): Promise<ShownCall[]> {
  return readCalls(context, {
    per_page: String(MAX_PER_PAGE),
    "filters.key": "id",
    "filters.operator": "gt",
    "filters.value": ulidFloor(Math.max(0, ulidTime(id) - LOOK_BACK_MS)),
  });
}

async function readCalls(context: CommandContext, query: Record<string, string>): Promise<ShownCall[]> {
  const search = new URLSearchParams(query);
  for (const name of ["provider", "model", "search"]) {
    const value = context.option(name);
    if (value !== undefined) search.set(name, value);
  }
  if (context.hasSwitch("errors")) search.set("success", "false");
  return (await context.client()).request<ShownCall[]>("GET", `${logsPath(context)}?${search.toString()}`);
}

function logsPath(context: CommandContext): string {
  const account = encodeURIComponent(context.option("account") ?? "default");
  const gateway = encodeURIComponent(context.option("gateway") ?? "default");
  return `/accounts/${account}/ai-gateway/gateways/${gateway}/logs`;
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

const COLUMNS = ["time", "id", "status", "provider", "model", "ms", "tokens in", "out", "cost", "cached"];

function toCells(call: ShownCall): string[] {
  return [
    call.created_at,
    call.id,
    String(call.status_code),
    call.provider,
    call.model === "" ? "-" : call.model,
    String(Math.round(call.duration)),
    String(call.tokens_in),
    String(call.tokens_out),
    call.cost === undefined ? "-" : `$${call.cost.toFixed(6)}`,
    call.cached ? "yes" : "no",
  ];
}
