/** The options of `token create` and `token patch` that make a token a virtual key. */
import type { NewTokenPolicy, TokenBudget, TokenRateLimit } from "@signalbox/client";
import { type CommandContext, type CommandOption, UsageError } from "./command.ts";

export const POLICY_OPTIONS: readonly CommandOption[] = [
  {
    name: "budget",
    value: "DOLLARS/WINDOW",
    summary: "e.g. 10/month, 2.50/day@Europe/Berlin, 1/3600s, 1/3600s~ (sliding), 100/total (repeatable)",
    isRepeatable: true,
  },
  {
    name: "soft-budget",
    value: "DOLLARS/WINDOW",
    summary: "report calls beyond this budget, do not refuse them",
  },
  {
    name: "rate",
    value: "TYPE=LIMIT",
    summary: "requests=60/60s, tokens=100000/60s or parallel=4 (repeatable)",
    isRepeatable: true,
  },
  {
    name: "model",
    value: "GLOB",
    summary: "allowed model, e.g. openai/gpt-5* or !*/o1-pro (repeatable)",
    isRepeatable: true,
  },
  { name: "provider", value: "GLOB", summary: "allowed provider (repeatable)", isRepeatable: true },
  {
    name: "route",
    value: "KIND",
    summary: "allowed kind of call, e.g. chat (repeatable)",
    isRepeatable: true,
  },
  {
    name: "metadata",
    value: "KEY=VALUE",
    summary: "metadata of every call; the value is JSON, or text (repeatable)",
    isRepeatable: true,
  },
  { name: "owner", value: "NAME", summary: "owner of the token" },
  {
    name: "tag",
    value: "KEY=VALUE",
    summary: "group of the token, e.g. team=search (repeatable)",
    isRepeatable: true,
  },
];

/** The members that the options name; members without an option are absent. */
export function readPolicy(context: CommandContext): NewTokenPolicy {
  const list = <T>(name: string, read: (text: string) => T): T[] | undefined => {
    const texts = context.options(name);
    return texts.length === 0 ? undefined : texts.map(read);
  };
  const soft = context.option("soft-budget");
  const metadata = list("metadata", (text) => toPair("metadata", text));
  const tags = list("tag", (text) => toPair("tag", text));
  return {
    budgets: list("budget", (text) => toBudget("budget", text)),
    soft_budget: soft === undefined ? undefined : toBudget("soft-budget", soft),
    rate_limits: list("rate", toRateLimit),
    models: list("model", (text) => text),
    providers: list("provider", (text) => text),
    routes: list("route", (text) => text),
    metadata:
      metadata === undefined
        ? undefined
        : Object.fromEntries(metadata.map(([key, value]) => [key, toMetadataValue(value)])),
    owner: context.option("owner"),
    tags: tags === undefined ? undefined : Object.fromEntries(tags),
  };
}

const BUDGET = /^(\d+(?:\.\d+)?)\/(?:(\d+)s(~)?|(day|week|month)|(total))(?:@([\w+/-]+))?$/;

function toBudget(option: string, text: string): TokenBudget {
  const match = BUDGET.exec(text);
  if (match === null) {
    throw new UsageError(
      `--${option}: expected an amount and a window, e.g. 10/month, 1/3600s or 100/total, found "${text}"`,
    );
  }
  const [, limit, seconds, isSliding, period, , timezone] = match;
  return {
    limit: Number(limit),
    window: seconds === undefined ? ((period ?? null) as "day" | "week" | "month" | null) : Number(seconds),
    ...(isSliding === undefined ? {} : { reset: "sliding" }),
    ...(timezone === undefined ? {} : { timezone }),
  };
}

function toRateLimit(text: string): TokenRateLimit {
  const match = /^(?:(requests|tokens)=(\d+)\/(\d+)s|parallel=(\d+))$/.exec(text);
  if (match === null) {
    throw new UsageError(
      `--rate: expected requests=60/60s, tokens=100000/60s or parallel=4, found "${text}"`,
    );
  }
  const [, type, limit, interval, parallel] = match;
  if (parallel !== undefined) return { type: "parallel", limit: Number(parallel) };
  return { type: type as "requests" | "tokens", limit: Number(limit), interval: Number(interval) };
}

function toPair(option: string, text: string): readonly [string, string] {
  const at = text.indexOf("=");
  if (at < 1) throw new UsageError(`--${option}: expected KEY=VALUE, found "${text}"`);
  return [text.slice(0, at), text.slice(at + 1)];
}

/** Numbers, booleans and null are recognised; any other text is a string. */
function toMetadataValue(text: string): string | number | boolean | null {
  if (!/^(?:-?\d+(?:\.\d+)?|true|false|null|".*")$/.test(text)) return text;
  try {
    return JSON.parse(text) as string | number | boolean | null;
  } catch {
    return text;
  }
}
