/** Usage by token, owner, user and metadata. */
import { SignalboxError } from "@signalbox/protocol";
import { isAllowed, type Principal, type Tokens } from "../../accounts/index.ts";
import {
  type CallLog,
  MAX_FIGURES,
  type UsageBy,
  type UsageByFigures,
  type UsageByQuery,
} from "../../engines/call-log/index.ts";
import type { Reply } from "../../http/route.ts";
import { showUsage } from "./show-usage.ts";
import { unreadableMessages } from "./unreadable-days.ts";
import type { NamedDimension } from "./usage-dimensions.ts";

export interface UsageByParts {
  readonly callLog: Pick<CallLog, "summariseBy" | "unreadableDays">;
  readonly tokens: Pick<Tokens, "find">;
}

export async function usageByWhom(
  { callLog, tokens }: UsageByParts,
  query: Omit<UsageByQuery, "dimensions">,
  named: readonly NamedDimension[],
  principal: Principal,
  signal: AbortSignal,
): Promise<Reply> {
  const { figures, otherValues, isBounded, countedFrom } = await summariseWhileWanted(
    callLog,
    { ...query, dimensions: named.map(({ dimension }) => dimension) },
    signal,
  );
  if (figures.length > MAX_FIGURES) {
    throw new SignalboxError("invalid_request", {
      message: `more than ${MAX_FIGURES} rows: group by fewer things, choose a shorter period or a smaller limit`,
    });
  }
  const nameOf = isAllowed(principal, query.accountId, "tokens.edit")
    ? (id: string) => tokens.find(query.accountId, id)?.name ?? null
    : null;
  const messages = [...(unreadableMessages(callLog) ?? [])];
  if (countedFrom !== null) {
    messages.push(
      `The period has too many calls for one request: counted from ${new Date(countedFrom).toISOString()}`,
    );
  }
  if (isBounded) {
    messages.push(
      "There were more values, or keys of metadata, than are told apart: `other` may have calls of the values that are listed",
    );
  }
  return {
    result: figures.map((one) => ({ ...showLabels(one, named, nameOf), ...showUsage(one, query.groupBy) })),
    resultInfo: {
      count: figures.length,
      other_values: otherValues,
      is_bounded: isBounded,
      counted_from: countedFrom === null ? null : new Date(countedFrom).toISOString(),
    },
    messages,
  };
}

/** Ends early, with nothing, if the caller has left. */
export async function summariseWhileWanted(
  callLog: Pick<CallLog, "summariseBy">,
  query: UsageByQuery,
  signal: AbortSignal,
): Promise<UsageBy> {
  try {
    return await callLog.summariseBy(query, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    return { figures: [], otherValues: 0, isBounded: false, countedFrom: null };
  }
}

function showLabels(
  { labels }: UsageByFigures,
  named: readonly NamedDimension[],
  nameOf: ((id: string) => string | null) | null,
): Record<string, unknown> {
  if (labels === null) return { other: true };
  const shown: Record<string, unknown> = {};
  const metadata: Record<string, string | null> = {};
  const tags: Record<string, string | null> = {};
  for (const [i, { name, dimension }] of named.entries()) {
    const value = labels[i] ?? null;
    if (dimension.kind === "token") {
      shown["token_id"] = value;
      if (nameOf !== null) shown["token_name"] = value === null ? null : nameOf(value);
    } else if (name.startsWith("metadata:")) metadata[dimension.key] = value;
    else if (name.startsWith("token_tag:")) tags[name.slice("token_tag:".length)] = value;
    else shown[name] = value;
  }
  if (Object.keys(metadata).length > 0) shown["metadata"] = metadata;
  if (Object.keys(tags).length > 0) shown["token_tags"] = tags;
  return shown;
}
