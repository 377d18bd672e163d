/**
 * Virtual keys and teams of LiteLLM's database as tokens and limits: a pure function of the rows and of the imported configuration. LiteLLM stores hashes
 * of its keys, and tokens of this service have a form of their own, so each key gets a new token. A restriction of a key that cannot be expressed
 * disables its token; rates of teams and limits of users are only named.
 */
import type { NewToken, SpendRule, TokenBudget, TokenRateLimit } from "@signalbox/client";
import { sha256 } from "../core/secret.ts";
import { toWindow } from "./litellm-budgets.ts";
import { fieldsOf, type LiteLlmImport } from "./litellm-config.ts";
import type { LiteLlmRows, Row } from "./litellm-database.ts";
import { splitModel } from "./litellm-providers.ts";

export interface ImportedToken {
  /** How the key is shown there, for example `sk-...abcd`. */
  readonly key: string;
  readonly token: NewToken;
  /** US dollars that are booked, because they count in a budget. */
  readonly spend: number;
  readonly team: string | null;
}

export interface LiteLlmKeys {
  readonly tokens: readonly ImportedToken[];
  readonly limits: readonly SpendRule[];
  /** What teams have spent beside their imported keys. */
  readonly teamSpend: readonly { readonly limit: string; readonly team: string; readonly spend: number }[];
  readonly notes: readonly string[];
}

interface Team {
  readonly name: string;
  readonly row: Row;
  /** Id of its limit; null for none. */
  readonly limit: string | null;
}

const MAX_TEXT = 256;
const MAX_METADATA = 15;
/** Keys of sessions in the dashboard of LiteLLM. */
const DASHBOARD = "litellm-dashboard";
const MINUTE_S = 60;
/** The highest limits that tokens of this service have. */
const MAX_RATE = 1_000_000_000;
const MAX_PARALLEL = 1_000_000;
/** Members of keys and teams that narrow what they may do, without a counterpart. */
const RESTRICTIONS = [
  "allowed_routes",
  "permissions",
  "model_max_budget",
  "budget_limits",
  "object_permission_id",
  "policies",
] as const;
const OTHERS = [
  "aliases",
  "config",
  "router_settings",
  "access_group_ids",
  "organization_id",
  "project_id",
] as const;

export function planLiteLlmKeys(rows: LiteLlmRows, config: LiteLlmImport, now: number): LiteLlmKeys {
  const notes: string[] = [];
  const limits: SpendRule[] = [];
  const teams = new Map<unknown, Team>();
  for (const row of rows.teams) {
    const name = nameOf(row["team_alias"], String(row["team_id"]), aliasesOf(rows.teams, "team_alias"));
    const limit = teamLimit(name, row, notes);
    if (limit !== null) limits.push(limit);
    teams.set(row["team_id"], { name, row, limit: limit?.id ?? null });
  }
  const tokens: ImportedToken[] = [];
  let sessions = 0;
  for (const row of rows.keys) {
    if (row["team_id"] === DASHBOARD) sessions += 1;
    else {
      const token = toToken(row, { rows, config, teams, now, notes });
      if (token !== null) tokens.push(token);
    }
  }
  if (sessions > 0) notes.push(`${sessions} keys of dashboard sessions were left out`);
  for (const user of rows.users) {
    const title = `user ${textOf(user["user_email"]) ?? String(user["user_id"])}`;
    const given = ["max_budget", "tpm_limit", "rpm_limit", "max_parallel_requests", "models"].filter((name) =>
      isGiven(user[name]),
    );
    if (given.length > 0)
      notes.push(`${title}: not taken over: ${given.join(", ")}; limit the tokens of this owner`);
  }
  if (rows.others.length > 0)
    notes.push(`tables with rows that were not taken over: ${rows.others.join(", ")}`);
  const teamSpend = [...teams.values()].flatMap(({ name, row, limit }) => {
    if (limit === null) return [];
    const ofKeys = tokens.filter((one) => one.team === name).reduce((sum, one) => sum + one.spend, 0);
    const spend = (numberOf(row["spend"]) ?? 0) - ofKeys;
    if (spend < -1e-6)
      notes.push(`team ${name}: the spend of its keys is higher than its own, and is what its limit counts`);
    return spend > 1e-6 ? [{ limit, team: name, spend }] : [];
  });
  return { tokens, limits, teamSpend, notes };
}

function teamLimit(name: string, row: Row, notes: string[]): SpendRule | null {
  const title = `team ${name}`;
  const lost = ["tpm_limit", "rpm_limit", "max_parallel_requests", "soft_budget", ...RESTRICTIONS].filter(
    (member) => isGiven(row[member]),
  );
  if (lost.length > 0) notes.push(`${title}: not taken over: ${lost.join(", ")}`);
  const limit = numberOf(row["max_budget"]);
  if (limit === null) return null;
  const window = toWindow(row["budget_duration"]);
  if (!(limit > 0) || window === undefined) {
    notes.push(`${title}: the budget or its period cannot be taken over, so its keys are disabled`);
    return null;
  }
  const slug = name.replaceAll(/[^A-Za-z0-9_-]+/g, "-").slice(0, 48);
  return {
    // Another team may have this name one day.
    id: `litellm-team-${slug}-${sha256(String(row["team_id"])).toString("hex").slice(0, 8)}`,
    enabled: true,
    limitType: "cost",
    limit,
    window,
    metadata: { team: { mode: "filter", values: [name] } },
  };
}

interface KeyContext {
  readonly rows: LiteLlmRows;
  readonly config: LiteLlmImport;
  readonly teams: ReadonlyMap<unknown, Team>;
  readonly now: number;
  readonly notes: string[];
}

function toToken(own: Row, context: KeyContext): ImportedToken | null {
  const { rows, teams, now, notes } = context;
  const hash = String(own["token"]);
  const key = textOf(own["key_name"]) ?? `sk-… (hash ${hash.slice(0, 8)})`;
  const name = nameOf(own["key_alias"], `litellm ${hash.slice(0, 16)}`, aliasesOf(rows.keys, "key_alias"));
  const shared = rows.budgets.find(
    (budget) => own["budget_id"] != null && budget["budget_id"] === own["budget_id"],
  );
  // The key's own values come first.
  const row: Row = {
    ...shared,
    ...Object.fromEntries(Object.entries(own).filter(([, value]) => isGiven(value))),
  };
  const expires = timeOf(own["expires"]);
  if (expires !== null && expires <= now) {
    notes.push(`key ${name}: has expired and was left out`);
    return null;
  }
  const team = teams.get(own["team_id"]) ?? null;
  const closed: string[] = [];
  if (own["blocked"] === true || team?.row["blocked"] === true) closed.push("it is blocked there");
  if (own["team_id"] != null && team === null)
    closed.push(`its team ${textOf(own["team_id"]) ?? ""} is not known`);
  if (numberOf(team?.row["max_budget"]) !== null && team?.limit === null)
    closed.push("the budget of its team cannot be taken over");
  const restrictions = RESTRICTIONS.filter((member) => isGiven(row[member]));
  if (restrictions.length > 0) closed.push(`it is restricted by ${restrictions.join(", ")}`);
  const others = OTHERS.filter((member) => isGiven(row[member]));
  if (others.length > 0) notes.push(`key ${name}: not taken over: ${others.join(", ")}`);
  const models = modelsOf(name, own, team, context);
  if (models?.length === 0) closed.push("none of its models is in the file");
  const budget = toBudget("max_budget", row, closed);
  const soft = toBudget("soft_budget", row, []);
  if (closed.length > 0) notes.push(`key ${name}: its token is disabled, because ${closed.join(", and ")}`);
  const owner = ownerOf(own["user_id"], rows.users);
  const counts = budget !== null || typeof team?.limit === "string";
  return {
    key,
    team: team?.name ?? null,
    spend: counts ? Math.max(0, numberOf(own["spend"]) ?? 0) : 0,
    token: {
      name,
      permissions: ["gateway.run"],
      ...(expires === null ? {} : { expires_at: new Date(expires).toISOString() }),
      ...(closed.length === 0 ? {} : { disabled: true }),
      ...(models === null || models.length === 0 ? {} : { models }),
      ...(budget === null ? {} : { budgets: [budget] }),
      ...(soft === null ? {} : { soft_budget: soft }),
      ...(owner === null ? {} : { owner }),
      rate_limits: toRateLimits(row),
      metadata: {
        ...toMetadata(name, own["metadata"], notes),
        ...(team === null ? {} : { team: team.name }),
      },
    },
  };
}

function toBudget(member: string, row: Row, closed: string[]): TokenBudget | null {
  const limit = numberOf(row[member]);
  if (limit === null) return null;
  const window = toWindow(row["budget_duration"]);
  if (limit > 0 && window !== undefined) return { limit, window };
  closed.push(`its ${member} of ${limit} or its period cannot be taken over`);
  return null;
}

/** A limit of 0 is none there. */
function toRateLimits(row: Row): TokenRateLimit[] {
  const limit = (member: string, max = MAX_RATE) => Math.min(max, Math.trunc(numberOf(row[member]) ?? 0));
  const limits: TokenRateLimit[] = [
    { type: "requests", limit: limit("rpm_limit"), interval: MINUTE_S },
    { type: "tokens", limit: limit("tpm_limit"), interval: MINUTE_S },
    { type: "parallel", limit: limit("max_parallel_requests", MAX_PARALLEL) },
  ];
  return limits.filter((one) => one.limit > 0);
}

/** Globs of `provider/model`; null for all models. A key of a team may call what both allow. */
function modelsOf(name: string, own: Row, team: Team | null, { config, notes }: KeyContext): string[] | null {
  const ofTeam = namesOf(team?.row["models"]);
  const given = namesOf(own["models"])?.flatMap((one) =>
    one === "all-team-models" ? (ofTeam ?? ["*"]) : [one],
  );
  const ofKey = given?.includes("*") === true ? null : (given ?? null);
  const names =
    ofKey === null ? ofTeam : ofTeam === null ? ofKey : ofKey.filter((one) => isAmong(one, ofTeam));
  if (names === null) return null;
  const globs = new Set<string>();
  const missing: string[] = [];
  for (const one of names) {
    const targets = targetsOf(one, config);
    if (targets.length === 0) missing.push(one);
    for (const target of targets) globs.add(target);
  }
  const lost = [...missing, ...(ofKey ?? []).filter((one) => !names.includes(one))];
  if (lost.length > 0) notes.push(`key ${name}: models that were not taken over: ${lost.join(", ")}`);
  return [...globs];
}

/** Null for all models. */
function namesOf(given: unknown): string[] | null {
  const names = Array.isArray(given) ? given.filter((one) => typeof one === "string") : [];
  return names.length === 0 || names.includes("all-proxy-models") || names.includes("*") ? null : names;
}

/** The models that a name reaches, with those that a call is sent to when it fails. */
function targetsOf(name: string, { configuration, routes }: LiteLlmImport): string[] {
  const { models } = configuration.gateway;
  const entry = Object.entries(models).find(([known]) => known === name || isAmong(name, [known]));
  if (entry === undefined) {
    const split = name.includes("/") ? splitModel(name) : undefined;
    return split === undefined ? [] : [`${split.slug}/${split.model}`];
  }
  const [pattern, target] = entry;
  if (!target.startsWith("dynamic/")) {
    const [before = ""] = pattern.split("*");
    const rest = pattern.includes("*")
      ? name.slice(before.length, name.length - (pattern.length - before.length - 1))
      : "";
    return [target.replace("*", () => rest)];
  }
  const route = routes.find((one) => `dynamic/${one.name}` === target);
  return (route?.elements ?? []).flatMap(({ type, properties }) => {
    const { provider, model } = fieldsOf(properties);
    return type === "model" ? [`${String(provider)}/${String(model)}`] : [];
  });
}

/** `openai/*` is among the names for `openai/gpt-5`. */
function isAmong(name: string, names: readonly string[]): boolean {
  return names.some((one) => {
    const [before = "", after] = one.split("*");
    if (after === undefined) return one === name;
    return name.length >= before.length + after.length && name.startsWith(before) && name.endsWith(after);
  });
}

function toMetadata(
  name: string,
  given: unknown,
  notes: string[],
): Record<string, string | number | boolean> {
  const metadata: Record<string, string | number | boolean> = {};
  const lost: string[] = [];
  for (const [member, value] of Object.entries(fieldsOf(given))) {
    const isKept =
      (typeof value === "number" ||
        typeof value === "boolean" ||
        (typeof value === "string" && value.length <= 512)) &&
      member.length <= 64 &&
      member !== "" &&
      !member.startsWith("token.") &&
      Object.keys(metadata).length < MAX_METADATA;
    if (isKept) metadata[member] = value;
    else if (isGiven(value)) lost.push(member);
  }
  if (lost.length > 0) notes.push(`key ${name}: metadata that was not taken over: ${lost.join(", ")}`);
  return metadata;
}

function ownerOf(id: unknown, users: readonly Row[]): string | null {
  const user = users.find((one) => one["user_id"] === id);
  return (textOf(user?.["user_email"]) ?? textOf(id))?.slice(0, MAX_TEXT) ?? null;
}

function aliasesOf(rows: readonly Row[], member: string): readonly unknown[] {
  return rows.map((row) => row[member]);
}

/** A name that no other has, and that is the same when the import is repeated: an alias that several have is completed by the id. */
function nameOf(alias: unknown, id: string, aliases: readonly unknown[]): string {
  const text = textOf(alias);
  if (text === null) return id.slice(0, MAX_TEXT);
  const isShared = aliases.filter((one) => one === alias).length > 1;
  return isShared ? `${text.slice(0, MAX_TEXT - 40)} (${id.slice(0, 32)})` : text.slice(0, MAX_TEXT);
}

/** Times of the database are UTC, without a zone. */
function timeOf(given: unknown): number | null {
  if (typeof given !== "string") return null;
  const time = Date.parse(/(?:Z|[+-]\d\d:?\d\d)$/.test(given) ? given : `${given}Z`);
  return Number.isNaN(time) ? null : time;
}

function numberOf(given: unknown): number | null {
  return typeof given === "number" && Number.isFinite(given) ? given : null;
}

function textOf(given: unknown): string | null {
  return typeof given === "string" && given !== "" ? given : null;
}

function isGiven(value: unknown): boolean {
  if (value === null || value === undefined || value === "") return false;
  return typeof value !== "object" || Object.keys(value).length > 0;
}
