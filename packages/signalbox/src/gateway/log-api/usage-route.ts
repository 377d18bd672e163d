/** The usage of an account over time, read from the hourly sums without counting rows. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { boundGateway, maySee, type Tokens } from "../../accounts/index.ts";
import type { Clock } from "../../core/clock.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import {
  addUsageFigures,
  type CallLog,
  LATENCY_BUCKETS_MS,
  USAGE_GROUPS,
  type UsageFigures,
  type UsageGroup,
} from "../../engines/call-log/index.ts";
import type { TagLookup } from "../../contracts/tag-lookup.ts";
import { percentile } from "./percentiles.ts";
import { unreadableMessages } from "./unreadable-days.ts";

const DEFAULT_SPAN_MS = 7 * 86_400_000;
const GATEWAY_TYPE = "ai_gateway";
const TAG_GROUP = "tag:";

export interface UsageRouteParts {
  readonly callLog: Pick<CallLog, "summarise" | "unreadableDays">;
  readonly clock: Clock;
  /** Usage can be grouped and filtered by the tags of gateways. */
  readonly tags: TagLookup;
}

const time = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

const usageQuery = z.strictObject({
  /** Comma-separated or repeated: hour or day, provider, model, gateway, `tag:<key>`. Default: one row with the total. */
  group_by: z.string().optional(),
  /** Inclusive, rounded down to the hour. Default: seven days before `end`. */
  start: time.optional(),
  /** Exclusive. Default: now. */
  end: time.optional(),
  /** Repeatable. Default: every gateway of the account. */
  gateway_id: z.string().optional(),
  /** Repeatable; a tag filter that the gateways must match. */
  tag: z.string().optional(),
});

const usageResult = z.object({
  hour: z.iso.datetime().optional(),
  day: z.iso.datetime().optional(),
  gateway_id: z.string().optional(),
  provider: z.string().optional(),
  model: z.string().optional(),
  /** Value of the tag in `group_by`; null for gateways without the tag. */
  tag: z.string().nullable().optional(),
  calls: z.number(),
  errors: z.number(),
  cached: z.number(),
  tokens_in: z.number(),
  tokens_out: z.number(),
  tokens_in_cached: z.number(),
  tokens_out_reasoning: z.number(),
  cost: z.number(),
  duration_avg: z.number().nullable(),
  duration_p50: z.number().nullable(),
  duration_p95: z.number().nullable(),
  duration_p99: z.number().nullable(),
  /** Calls with a duration of at most `le` milliseconds and above the previous bound; null: no bound. */
  durations: z.array(z.object({ le: z.number().nullable(), calls: z.number() })),
});

interface Groups {
  readonly groups: readonly UsageGroup[];
  readonly tagKey: string | null;
}

/** The usage of one token. */
export function tokenUsageRoute(parts: UsageRouteParts & { readonly tokens: Tokens }): Route {
  return defineRoute({
    method: "GET",
    path: "/accounts/{account_id}/tokens/{token_id}/usage",
    access: "tokens.edit",
    summary: "Calls, errors, tokens, cost and durations of one token, from the rows of the call log.",
    query: usageQuery.omit({ tag: true }),
    narrowsToGateway: true,
    result: z.array(usageResult),
    handler: async ({ params, query, rawQuery, principal }) => {
      const { account_id: accountId, token_id: tokenId } = params;
      const token = parts.tokens.find(accountId, tokenId);
      if (token === undefined) throw new SignalboxError("not_found", { message: "Token not found" });
      if (!maySee(principal, token)) throw new SignalboxError("forbidden");
      const { groups, tagKey } = parseGroups(rawQuery.getAll("group_by"));
      if (tagKey !== null) throw invalid("group_by: usage of a token cannot be grouped by a tag");
      const { from, to } = periodOf(query, parts.clock);
      const gatewayIds = await selectGateways(parts.tags, accountId, rawQuery, boundGateway(principal));
      const figures = await parts.callLog.summarise({
        accountId,
        gatewayIds,
        from,
        to,
        groupBy: groups,
        tokenId,
      });
      return {
        result: figures.map((one) => showUsage(one, groups)),
        messages: unreadableMessages(parts.callLog),
      };
    },
  });
}

export function usageRoute(parts: UsageRouteParts): Route {
  return defineRoute({
    method: "GET",
    path: "/accounts/{account_id}/ai-gateway/usage",
    access: "gateway.read",
    summary:
      "Calls, errors, tokens, cost and durations by hour, day, provider, model, gateway or a gateway tag.",
    query: usageQuery,
    narrowsToGateway: true,
    result: z.array(usageResult),
    handler: async ({ params, query, rawQuery, principal }) => {
      const accountId = params["account_id"] ?? "";
      const { groups, tagKey } = parseGroups(rawQuery.getAll("group_by"));
      const { from, to } = periodOf(query, parts.clock);
      const gatewayIds = await selectGateways(parts.tags, accountId, rawQuery, boundGateway(principal));
      const groupBy = tagKey === null ? groups : [...new Set<UsageGroup>([...groups, "gateway"])];
      const figures = await parts.callLog.summarise({ accountId, gatewayIds, from, to, groupBy });
      const messages = unreadableMessages(parts.callLog);
      if (tagKey === null) return { result: figures.map((one) => showUsage(one, groups)), messages };
      const values = await parts.tags.valuesOf(accountId, GATEWAY_TYPE, tagKey);
      const result = mergeByTag(figures, values, groups).map(({ figures: one, tag }) => ({
        ...showUsage(one, groups),
        tag,
      }));
      return { result, messages };
    },
  });
}

interface Period {
  readonly from: number;
  readonly to: number;
}

function periodOf(
  { start, end }: { readonly start?: number | undefined; readonly end?: number | undefined },
  clock: Clock,
): Period {
  const to = end ?? clock.now();
  const from = start ?? to - DEFAULT_SPAN_MS;
  if (from >= to) throw invalid("start: must be before end");
  return { from, to };
}

function parseGroups(texts: readonly string[]): Groups {
  const names = texts.flatMap((text) => text.split(",")).filter((name) => name !== "");
  const tagKeys = names
    .filter((name) => name.startsWith(TAG_GROUP))
    .map((name) => name.slice(TAG_GROUP.length));
  const groups = names.filter((name) => !name.startsWith(TAG_GROUP));
  const unknown = groups.find((name) => !(USAGE_GROUPS as readonly string[]).includes(name));
  if (unknown !== undefined) {
    throw invalid(`group_by: expected ${USAGE_GROUPS.join(", ")} or tag:<key>, found "${unknown}"`);
  }
  if (tagKeys.length > 1) throw invalid("group_by: one tag at a time");
  if (tagKeys[0] === "") throw invalid("group_by: tag: needs a key");
  if (groups.includes("hour") && groups.includes("day")) throw invalid("group_by: hour or day, not both");
  return { groups: groups as UsageGroup[], tagKey: tagKeys[0] ?? null };
}

/** Null: all gateways of the account. */
async function selectGateways(
  tags: TagLookup,
  accountId: string,
  query: URLSearchParams,
  own: string | null,
): Promise<readonly string[] | null> {
  // A token that is bound to a gateway reads the usage of that gateway only.
  const given = query.getAll("gateway_id");
  if (own !== null && given.some((id) => id !== own)) throw new SignalboxError("forbidden");
  const named = own === null ? given : [own];
  const filters = query.getAll("tag");
  const tagged = filters.length === 0 ? null : await tags.matchingIds(accountId, GATEWAY_TYPE, filters);
  if (tagged === null) return named.length === 0 ? null : named;
  return named.length === 0 ? [...tagged] : named.filter((id) => tagged.has(id));
}

interface Tagged {
  readonly figures: UsageFigures;
  readonly tag: string | null;
}

/** Adds up the figures of gateways with the same tag value; the other groups stay. */
function mergeByTag(
  all: readonly UsageFigures[],
  values: ReadonlyMap<string, string>,
  groups: readonly UsageGroup[],
): Tagged[] {
  const merged = new Map<string, Tagged>();
  for (const one of all) {
    const tag = values.get(one.gatewayId ?? "") ?? null;
    const gatewayId = groups.includes("gateway") ? one.gatewayId : null;
    const key = JSON.stringify([tag, one.time, one.provider, one.model, gatewayId]);
    const known = merged.get(key);
    merged.set(key, { tag, figures: known === undefined ? one : addUsageFigures(known.figures, one) });
  }
  return [...merged.values()];
}

function showUsage(one: UsageFigures, groups: readonly UsageGroup[]): z.input<typeof usageResult> {
  const start = one.time === null ? undefined : new Date(one.time).toISOString();
  return {
    ...(groups.includes("hour") ? { hour: start } : {}),
    ...(groups.includes("day") ? { day: start } : {}),
    ...(groups.includes("gateway") ? { gateway_id: one.gatewayId ?? "" } : {}),
    ...(groups.includes("provider") ? { provider: one.provider ?? "" } : {}),
    ...(groups.includes("model") ? { model: one.model ?? "" } : {}),
    calls: one.calls,
    errors: one.errors,
    cached: one.cached,
    tokens_in: one.tokensIn,
    tokens_out: one.tokensOut,
    tokens_in_cached: one.tokensInCached,
    tokens_out_reasoning: one.tokensOutReasoning,
    cost: one.cost,
    duration_avg: one.calls === 0 ? null : Math.round((one.durationMs / one.calls) * 100) / 100,
    duration_p50: percentile(one.latency, 0.5),
    duration_p95: percentile(one.latency, 0.95),
    duration_p99: percentile(one.latency, 0.99),
    durations: one.latency.map((calls, i) => ({ le: LATENCY_BUCKETS_MS[i] ?? null, calls })),
  };
}

function invalid(message: string): SignalboxError {
  return new SignalboxError("invalid_request", { message });
}
