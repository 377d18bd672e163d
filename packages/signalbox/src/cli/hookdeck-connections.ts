/**
 * Connections of Hookdeck as routes: the answer of its `GET /connections`, in the form of 2025 (`config`) and the one before. Pure; what has no equivalent
 * becomes a note, and a route that would send something else than before is paused.
 */
import type { RouteAuth, RouteFilters, RouteRetry, RouteSettings, RouteTarget } from "@signalbox/client";
import { UsageError } from "./command.ts";

export interface ImportedRoute {
  readonly source: string;
  readonly name: string;
  readonly settings: RouteSettings;
}

export interface HookdeckImport {
  /** By name, with the scheme that its type has here; null if it has none. */
  readonly sources: Readonly<Record<string, { readonly scheme: string | null; readonly type: string }>>;
  readonly routes: readonly ImportedRoute[];
  /** What was not taken over, or must be done by hand. */
  readonly notes: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;

/** Types of sources whose deliveries are verified here. Those without an own scheme are verified by a secret of ours. */
const SCHEMES: Readonly<Record<string, string>> = {
  STRIPE: "stripe",
  GITHUB: "github",
  GITLAB: "gitlab",
  SHOPIFY: "shopify",
  SLACK: "slack",
  TWILIO: "twilio",
  LINEAR: "linear",
  PAGERDUTY: "pagerduty",
  DISCORD: "discord",
  SENDGRID: "sendgrid",
  PAYPAL: "paypal",
  AWS_SNS: "sns",
  SVIX: "svix",
  CLERK: "svix",
  RESEND: "svix",
  STANDARD_WEBHOOKS: "standard",
  WEBHOOK: "generic",
  HTTP: "generic",
};
const PERIODS = ["second", "minute", "hour"] as const;
const METHODS = ["POST", "PUT", "PATCH", "DELETE"] as const;
const MIN_INTERVAL_MS = 1000;
const MAX_INTERVAL_MS = 24 * 60 * 60 * 1000;

export function planHookdeckImport(text: string): HookdeckImport {
  const sources: Record<string, { scheme: string | null; type: string }> = {};
  const routes: ImportedRoute[] = [];
  const notes: string[] = [];
  for (const connection of parseConnections(text)) {
    const source = fieldsOf(connection["source"]);
    const destination = fieldsOf(connection["destination"]);
    const sourceName = toName(textOf(source["name"]) ?? "source");
    const type = (textOf(source["type"]) ?? "WEBHOOK").toUpperCase();
    const wanted = toName(textOf(connection["name"]) ?? textOf(destination["name"]) ?? "route");
    const name = unique(wanted, routes, sourceName);
    const title = `${sourceName} → ${name}`;
    const note = (what: string) => notes.push(`${title}: ${what}`);
    if (connection["disabled_at"] != null) {
      note("is disabled and was left out");
      continue;
    }
    const doubts: string[] = [];
    const to = toTarget(destination, doubts);
    if (to === null) {
      note(
        `the destination ${textOf(destination["type"]) ?? "of this type"} has no equivalent and was left out`,
      );
      continue;
    }
    sources[sourceName] = { scheme: SCHEMES[type] ?? null, type };
    const rules = Array.isArray(connection["rules"]) ? connection["rules"].map(fieldsOf) : [];
    const { settings, losses } = toSettings(rules, destination);
    doubts.push(...losses);
    for (const doubt of doubts) note(doubt);
    const isPaused = connection["paused_at"] != null || doubts.length > 0;
    if (doubts.length > 0) note("the route is paused until this is decided: signalbox webhooks resume");
    routes.push({
      source: sourceName,
      name,
      settings: { ...settings, to, ...(isPaused ? { paused: true } : {}) },
    });
  }
  return { sources, routes, notes };
}

function parseConnections(text: string): readonly Fields[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new UsageError("the file is not JSON: expected the answer of GET /connections");
  }
  const list = Array.isArray(parsed) ? parsed : fieldsOf(parsed)["models"];
  if (!Array.isArray(list))
    throw new UsageError("expected a list of connections, or an object with `models`");
  return list.map(fieldsOf).filter((connection) => "source" in connection && "destination" in connection);
}

function toTarget(destination: Fields, doubts: string[]): RouteTarget | null {
  const config = { ...destination, ...fieldsOf(destination["config"]) };
  const type = (textOf(destination["type"]) ?? "HTTP").toUpperCase();
  if (type === "CLI" || textOf(config["cli_path"]) !== null) return { listen: true };
  const url = textOf(config["url"]);
  if (url === null || (type !== "HTTP" && type !== "WEBHOOK")) return null;
  const method = METHODS.find((one) => one === textOf(config["http_method"])?.toUpperCase());
  const auth = toAuth(config, doubts);
  return { url, ...(method === undefined ? {} : { method }), ...(auth === undefined ? {} : { auth }) };
}

function toAuth(config: Fields, doubts: string[]): RouteAuth | undefined {
  const before = fieldsOf(config["auth_method"]);
  const type = (textOf(config["auth_type"]) ?? textOf(before["type"]) ?? "").toUpperCase();
  const auth = { ...fieldsOf(before["config"]), ...fieldsOf(config["auth"]) };
  const missing = (what: string): undefined => {
    doubts.push(what);
    return undefined;
  };
  switch (type) {
    case "":
    case "NONE":
      return undefined;
    case "BEARER_TOKEN": {
      const secret = textOf(auth["token"]);
      return secret === null ? missing("the bearer token is not in the file") : { type: "bearer", secret };
    }
    case "BASIC_AUTH": {
      const username = textOf(auth["username"]);
      const secret = textOf(auth["password"]);
      return username === null || secret === null
        ? missing("user name and password are not in the file")
        : { type: "basic", username, secret };
    }
    case "API_KEY": {
      const name = textOf(auth["key"]);
      const secret = textOf(auth["api_key"]) ?? textOf(auth["value"]);
      if (textOf(auth["to"]) === "query") return missing("an API key in the query has no equivalent");
      return name === null || secret === null
        ? missing("the API key is not in the file")
        : { type: "header", name, secret };
    }
    default:
      return missing(
        `the authentication ${type} has no equivalent; set \`auth\` to signature or standard, and verify that at the receiver`,
      );
  }
}

function toSettings(
  rules: readonly Fields[],
  destination: Fields,
): { settings: Omit<RouteSettings, "to">; losses: readonly string[] } {
  const losses: string[] = [];
  let settings: Omit<RouteSettings, "to"> = {};
  for (const rule of rules) {
    switch (rule["type"]) {
      case "filter":
        if (settings.when !== undefined) losses.push("only the first of several filters was taken over");
        else settings = { ...settings, when: toFilters(rule) };
        break;
      case "retry":
        settings = { ...settings, retry: toRetry(rule) };
        break;
      case "delay":
        settings = { ...settings, delay: Math.round(Number(rule["delay"] ?? 0)) };
        break;
      case "deduplicate":
        settings = { ...settings, ...toDedupe(rule, losses) };
        break;
      case "transform":
        losses.push("transformations have no equivalent: an agent can send the changed event on");
        break;
      default:
        losses.push(`the rule ${String(rule["type"])} is not known`);
    }
  }
  return { settings: { ...settings, ...toRate(destination) }, losses };
}

function toFilters(rule: Fields): RouteFilters {
  const parts = ["body", "headers", "query", "path"] as const;
  return Object.fromEntries(parts.flatMap((part) => (rule[part] == null ? [] : [[part, rule[part]]])));
}

function toRetry(rule: Fields): RouteRetry {
  const wanted = Number(rule["interval"] ?? 60_000);
  const statuses = Array.isArray(rule["response_status_codes"])
    ? rule["response_status_codes"].map((one: unknown) => (typeof one === "number" ? one : String(one)))
    : [];
  return {
    strategy: rule["strategy"] === "linear" ? "linear" : "exponential",
    intervalMs: Math.min(MAX_INTERVAL_MS, Math.max(MIN_INTERVAL_MS, Math.round(wanted))),
    count: Math.min(100, Math.max(0, Math.round(Number(rule["count"] ?? 5)))),
    ...(statuses.length === 0 ? {} : { statuses }),
  };
}

function toDedupe(rule: Fields, losses: string[]): Pick<RouteSettings, "dedupe"> {
  const included = Array.isArray(rule["include_fields"]) ? rule["include_fields"].map(String) : [];
  const outside = included.filter((field) => !field.startsWith("body."));
  if (Array.isArray(rule["exclude_fields"]) && rule["exclude_fields"].length > 0)
    losses.push("deduplication without some fields has no equivalent; the whole body is compared");
  if (outside.length > 0) losses.push(`deduplication by ${outside.join(", ")} has no equivalent`);
  const fields = included
    .filter((field) => field.startsWith("body."))
    .map((field) => field.slice("body.".length));
  const windowMs = Math.max(MIN_INTERVAL_MS, Math.round(Number(rule["window"] ?? MIN_INTERVAL_MS)));
  return { dedupe: { windowMs, ...(fields.length === 0 ? {} : { fields }) } };
}

function toRate(destination: Fields): Pick<RouteSettings, "rate"> {
  const config = { ...destination, ...fieldsOf(destination["config"]) };
  const limit = Number(config["rate_limit"] ?? 0);
  if (!(limit > 0)) return {};
  const period = textOf(config["rate_limit_period"]) ?? "second";
  if (period === "concurrent") return { rate: { concurrent: Math.min(256, Math.round(limit)) } };
  return {
    rate: { limit: Math.max(1, Math.round(limit)), per: PERIODS.find((one) => one === period) ?? "second" },
  };
}

function unique(name: string, routes: readonly ImportedRoute[], source: string): string {
  const isTaken = (one: string) => routes.some((route) => route.source === source && route.name === one);
  let found = name;
  for (let n = 2; isTaken(found); n++) found = `${name.slice(0, 60)}-${n}`;
  return found;
}

function toName(text: string): string {
  const name = text
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, "-")
    .replace(/^[-_]+/, "")
    .slice(0, 64);
  return name === "" ? "unnamed" : name;
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
