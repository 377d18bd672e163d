/**
 * The usage of an account: over time, by provider, model, gateway and tag from the hourly sums; by token, owner, user or metadata from totals;
 * by minute, and by several of these, from the rows of calls, within a budget.
 * See docs/decisions/0310.
 */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { invalidRequest } from "../../core/invalid-request.ts";
import { boundGateway, maySee, type Tokens } from "../../accounts/index.ts";
import type { Clock } from "../../core/clock.ts";
import { defineRoute, type Reply, type Route } from "../../http/route.ts";
import {
  addUsageFigures,
  type CallLog,
  USAGE_GROUPS,
  type UsageFigures,
  type UsageGroup,
} from "../../engines/call-log/index.ts";
import type { TagLookup } from "../../contracts/tag-lookup.ts";
import { showUsage, usageResult } from "./show-usage.ts";
import { unreadableMessages } from "./unreadable-days.ts";
import { summariseWhileWanted, usageByWhom, type UsageByParts } from "./usage-by-whom.ts";
import { usageCsv } from "./usage-csv.ts";
import {
  DIMENSION_NAMES,
  type NamedDimension,
  parseDimension,
  parseOnly,
  requireFewDimensions,
} from "./usage-dimensions.ts";

const DEFAULT_SPAN_MS = 7 * 86_400_000;
const GATEWAY_TYPE = "ai_gateway";
const TAG_GROUP = "tag:";
const TIME_GROUPS = ["minute", "hour", "day"];
/** Values of token, owner, user or metadata that one response lists. */
const MAX_VALUES = 1000;

export interface UsageRouteParts {
  readonly callLog: Pick<CallLog, "summarise" | "summariseBy" | "unreadableDays">;
  readonly clock: Clock;
  /** Usage can be grouped and filtered by the tags of gateways. */
  readonly tags: TagLookup;
}

const time = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

const usageQuery = z.strictObject({
  /**
   * Comma-separated or repeated: minute, hour or day, provider, model, gateway, `tag:<key>` of gateways; or token, owner, user, `metadata:<key>`,
   * `token_tag:<key>`. Rows of calls are read for minutes, for two of the groups after the semicolon, and for metadata with provider or model.
   * Default: one row with the total.
   */
  group_by: z.string().optional(),
  /** Inclusive, rounded down to the hour unless rows are read. Default: seven days before `end`. */
  start: time.optional(),
  /** Exclusive. Default: now. */
  end: time.optional(),
  /** Repeatable. Default: every gateway of the account. */
  gateway_id: z.string().optional(),
  /** Repeatable; a tag filter that the gateways must match. */
  tag: z.string().optional(),
  /** Repeatable; only the calls of a token, owner, user or metadata value: `owner=ada`, `metadata:team=search`. Empty: calls without one. */
  only: z.string().optional(),
  /** Number of values of token, owner, user or metadata; the rest is one row with `other`. Default 100. */
  limit: z.coerce.number().int().min(1).max(MAX_VALUES).default(100),
  format: z.enum(["json", "csv"]).default("json"),
});

interface Groups {
  readonly groups: readonly UsageGroup[];
  readonly tagKey: string | null;
  readonly dimensions: readonly NamedDimension[];
}

/** The usage of one token. */
export function tokenUsageRoute(parts: UsageRouteParts & { readonly tokens: Tokens }): Route {
  return defineRoute({
    method: "GET",
    path: "/accounts/{account_id}/tokens/{token_id}/usage",
    access: "tokens.edit",
    summary: "Calls, errors, tokens, cost and durations of one token.",
    query: usageQuery.omit({ tag: true, only: true, limit: true, format: true }),
    repeatable: ["group_by", "gateway_id"],
    narrowsToGateway: true,
    result: z.array(usageResult),
    handler: async ({ params, query, rawQuery, principal, signal }) => {
      const { account_id: accountId, token_id: tokenId } = params;
      const token = parts.tokens.find(accountId, tokenId);
      if (token === undefined) throw new SignalboxError("not_found", { message: "Token not found" });
      if (!maySee(principal, token)) throw new SignalboxError("forbidden");
      const { groups, tagKey, dimensions } = parseGroups(rawQuery.getAll("group_by"));
      if (tagKey !== null) throw invalidRequest("group_by: usage of a token cannot be grouped by a tag");
      if (dimensions.length > 0 || groups.includes("minute"))
        throw invalidRequest(
          `group_by: expected ${USAGE_GROUPS.filter((name) => name !== "minute").join(", ")}`,
        );
      const { from, to } = periodOf(query, parts.clock);
      const gatewayIds = await selectGateways(parts.tags, accountId, rawQuery, boundGateway(principal));
      const only = [{ dimension: { kind: "token" } as const, value: tokenId }];
      const request = {
        accountId,
        gatewayIds,
        from,
        to,
        groupBy: groups,
        dimensions: [],
        only,
        maxValues: 1,
      };
      const { figures } = await summariseWhileWanted(parts.callLog, request, signal);
      return {
        result: figures.map((one) => showUsage(one, groups)),
        messages: unreadableMessages(parts.callLog),
      };
    },
  });
}

export function usageRoute(parts: UsageRouteParts & Pick<UsageByParts, "tokens">): Route {
  return defineRoute({
    method: "GET",
    path: "/accounts/{account_id}/ai-gateway/usage",
    access: "gateway.read",
    summary:
      "Calls, errors, tokens, cost, durations and time to first token by minute, hour, day, provider, model, gateway, gateway tag, token, owner, user or metadata; as JSON or CSV.",
    query: usageQuery,
    repeatable: ["group_by", "gateway_id", "tag", "only"],
    narrowsToGateway: true,
    result: z.array(usageResult),
    handler: async ({ params, query, rawQuery, principal, signal }) => {
      const accountId = params.account_id;
      const { groups, tagKey, dimensions } = parseGroups(rawQuery.getAll("group_by"));
      const { from, to } = periodOf(query, parts.clock);
      const gatewayIds = await selectGateways(parts.tags, accountId, rawQuery, boundGateway(principal));
      const only = rawQuery.getAll("only").map(parseOnly);
      const reply = (found: Reply) =>
        query.format === "csv" ? usageCsv(found.result as Record<string, unknown>[]) : found;
      if (dimensions.length > 0 || only.length > 0 || groups.includes("minute")) {
        if (tagKey !== null)
          throw invalidRequest(
            "group_by: tag:<key> cannot be combined with minute, token, owner, user or metadata",
          );
        const request = { accountId, gatewayIds, from, to, groupBy: groups, only, maxValues: query.limit };
        return reply(await usageByWhom(parts, request, dimensions, principal, signal));
      }
      const groupBy = tagKey === null ? groups : [...new Set<UsageGroup>([...groups, "gateway"])];
      const figures = await parts.callLog.summarise({ accountId, gatewayIds, from, to, groupBy });
      const messages = unreadableMessages(parts.callLog);
      if (tagKey === null) return reply({ result: figures.map((one) => showUsage(one, groups)), messages });
      const values = await parts.tags.valuesOf(accountId, GATEWAY_TYPE, tagKey);
      const result = mergeByTag(figures, values, groups).map(({ figures: one, tag }) => ({
        ...showUsage(one, groups),
        tag,
      }));
      return reply({ result, messages });
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
  if (from >= to) throw invalidRequest("start: must be before end");
  return { from, to };
}

function parseGroups(texts: readonly string[]): Groups {
  const names = texts.flatMap((text) => text.split(",")).filter((name) => name !== "");
  const tagKeys = names
    .filter((name) => name.startsWith(TAG_GROUP))
    .map((name) => name.slice(TAG_GROUP.length));
  const rest = names.filter((name) => !name.startsWith(TAG_GROUP));
  const dimensions = [...new Set(rest)].flatMap((name) => parseDimension(name) ?? []);
  requireFewDimensions(dimensions);
  const groups = rest.filter((name) => !dimensions.some((dimension) => dimension.name === name));
  const unknown = groups.find((name) => !(USAGE_GROUPS as readonly string[]).includes(name));
  if (unknown !== undefined) {
    throw invalidRequest(
      `group_by: expected ${USAGE_GROUPS.join(", ")}, tag:<key>, ${DIMENSION_NAMES}, found "${unknown}"`,
    );
  }
  if (tagKeys.length > 1) throw invalidRequest("group_by: one tag at a time");
  if (tagKeys[0] === "") throw invalidRequest("group_by: tag: needs a key");
  if (groups.filter((name) => TIME_GROUPS.includes(name)).length > 1)
    throw invalidRequest("group_by: one of minute, hour and day");
  return { groups: groups as UsageGroup[], tagKey: tagKeys[0] ?? null, dimensions };
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
