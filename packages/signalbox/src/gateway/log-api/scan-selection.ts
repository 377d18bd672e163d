/** The query of lists and exports over all gateways: filters of the call log, gateways, and a text. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { boundGateway, type Principal } from "../../accounts/index.ts";
import { requireStorable } from "../../core/storable-text.ts";
import type { CallScan } from "../../engines/call-log/index.ts";
import { parseSelection } from "./parse-selection.ts";

const MAX_TEXT = 256;

/** For the documentation: repeated parameters are read from the raw query. */
export const scanParameters = {
  /** Text in the prompt or the answer; upper and lower case are equal. */
  q: z.string().max(MAX_TEXT).optional(),
  /** Repeatable. Default: all gateways of the account. */
  gateway_id: z.string().optional(),
  search: z.string().max(256).optional(),
  "filters.key": z.string().optional(),
  "filters.operator": z.string().optional(),
  "filters.value": z.string().optional(),
  direction: z.enum(["asc", "desc"]).default("desc"),
};

export function toScan(
  accountId: string,
  query: { readonly q?: string | undefined; readonly direction: "asc" | "desc" },
  rawQuery: URLSearchParams,
  principal: Principal,
  ownParameters: readonly string[],
): Omit<CallScan, "cursor" | "limit" | "previewLength" | "withBodies"> {
  const own = boundGateway(principal);
  const given = rawQuery.getAll("gateway_id");
  // A token that is bound to a gateway reads the calls of that gateway only.
  if (own !== null && given.some((id) => id !== own)) throw new SignalboxError("forbidden");
  for (const id of given) requireStorable("gateway_id", id);
  const named = own === null ? given : [own];
  return {
    accountId,
    gatewayIds: named.length === 0 ? null : named,
    selection: parseSelection(rawQuery, ownParameters),
    text: query.q ?? "",
    direction: query.direction,
  };
}

export function requireCursor(cursor: string | undefined): void {
  if (cursor !== undefined && !/^[\w.-]{1,64}$/.test(cursor)) {
    throw new SignalboxError("invalid_request", { message: "cursor: unknown" });
  }
}
