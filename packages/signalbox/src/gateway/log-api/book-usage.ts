/**
 * Usage that was measured elsewhere (a batch, a video, a call that did not pass through the gateway) as a call of the gateway: one row in the call log, and a
 * charge of the limits that a call of this provider, model, token and metadata has. A limit that is exceeded refuses nothing here: the money is spent.
 */
import { z } from "zod";
import { isAllowed, type Principal, type Token, type Tokens } from "../../accounts/index.ts";
import type { Clock } from "../../core/clock.ts";
import { invalidRequest } from "../../core/invalid-request.ts";
import { ulid } from "../../core/ulid.ts";
import type { CallLog } from "../../engines/call-log/index.ts";
import { NO_USAGE, type Usage } from "../../engines/relay/index.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { GatewayLimits } from "../limits/create-limits.ts";
import type { Gateway } from "../settings/gateway.ts";
import { gatewayMissing, type Gateways } from "../settings/gateways.ts";
import { toMetadata } from "../step/call-options.ts";
import { toBookedRecord } from "./booked-record.ts";

export interface BookUsageParts {
  readonly gatewayLimits: Pick<GatewayLimits, "limits" | "prices">;
  readonly gateways: Gateways;
  readonly tokens: Tokens;
  readonly callLog: Pick<CallLog, "record" | "whenRoom">;
  readonly clock: Clock;
}

const count = z.int().min(0).max(1e12).default(0);
const amount = z.number().min(0).max(1e9).default(0);
const bookedUsage = z.strictObject({
  /** Slug of the provider, as in the call log. */
  provider: z.string().min(1).max(128),
  model: z.string().min(1).max(256),
  /** All input, with cached input and input that was written to the provider's cache. */
  tokens_in: count,
  tokens_out: count,
  tokens_in_cached: count,
  tokens_in_cache_write: count,
  tokens_out_reasoning: count,
  /** What is billed by the piece: web searches, seconds of sound, pages, characters, pictures. */
  searches: count,
  seconds: amount,
  pages: count,
  characters: count,
  images: count,
  /** `batch`, `flex`, `priority` … */
  tier: z.string().max(64).default(""),
  /** US dollars. Default: by the prices of the account, the configuration and the list. */
  cost: z.number().min(0).max(1e6).optional(),
  /** The token that is charged. Default: that of the caller. */
  token_id: z.string().max(64).optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  event_id: z.string().max(256).optional(),
  duration_ms: amount,
});
type BookedUsage = z.infer<typeof bookedUsage>;

export function bookUsageRoute({ gatewayLimits, gateways, tokens, callLog, clock }: BookUsageParts): Route {
  const { limits, prices } = gatewayLimits;
  return defineRoute({
    method: "POST",
    effect: "create",
    path: "/accounts/{account_id}/ai-gateway/gateways/{gateway_id}/usage",
    access: "gateway.price",
    summary:
      "Books usage that was measured elsewhere: a row in the call log, and a charge of the limits that apply. A booking that is sent twice counts twice.",
    body: bookedUsage,
    result: z.object({ id: z.string(), cost: z.number() }),
    handler: async ({ params, body, principal }) => {
      const gateway = gateways.find(params.account_id, params.gateway_id);
      if (gateway === undefined) throw gatewayMissing();
      const token = requireToken(principal, params.account_id, body.token_id);
      const metadata =
        body.metadata === undefined ? null : toMetadata(JSON.stringify(body.metadata), "metadata");
      const usage = usageOf(body);
      const cost =
        body.cost ?? prices.costOf(body.provider, body.model, usage, prices.ofAccount(gateway.accountId));
      if (cost === null) {
        throw invalidRequest(
          `the price of ${body.provider}/${body.model} is unknown for this usage: state the cost`,
        );
      }
      const id = ulid(clock.now());
      // Charge and row are of one moment: nothing waits between them.
      if (gateway.settings.collect_logs) {
        await callLog.whenRoom();
        callLog.record(
          toBookedRecord(gateway, id, clock.now(), {
            ...usage,
            provider: body.provider,
            model: body.model,
            cost,
            isCustomCost: body.cost !== undefined,
            metadata,
            eventId: body.event_id ?? null,
            tokenId: token?.id ?? null,
            durationMs: body.duration_ms,
          }),
        );
      }
      charge(gateway, token, metadata, body, cost);
      return { status: 201, result: { id, cost } };
    },
  });

  /** Without `token_id`, the token of the caller. Another one is charged only for a caller that may change its budgets. */
  function requireToken(principal: Principal, accountId: string, id: string | undefined): Token | null {
    const own = principal.kind === "token" ? principal.token : null;
    if (id === undefined || id === own?.id) return own;
    if (!isAllowed(principal, accountId, "tokens.edit")) {
      throw invalidRequest("token_id: only a caller with tokens.edit books for another token");
    }
    const token = tokens.find(accountId, id);
    if (token === undefined) throw invalidRequest("token_id names no token of this account");
    return token;
  }

  function charge(
    gateway: Gateway,
    token: Token | null,
    metadata: string | null,
    { provider, model, tokens_in: tokensIn, tokens_out: tokensOut }: BookedUsage,
    cost: number,
  ): void {
    const rules = limits.rulesOf(gateway, token);
    rules?.setMetadata(metadata);
    rules?.settle(null, [{ provider, models: [model], cost, tokens: tokensIn + tokensOut }]);
  }
}

function usageOf(body: BookedUsage): Usage {
  return {
    ...NO_USAGE,
    tokensIn: body.tokens_in,
    tokensOut: body.tokens_out,
    tokensInCached: body.tokens_in_cached,
    tokensInCacheWrite: body.tokens_in_cache_write,
    tokensOutReasoning: body.tokens_out_reasoning,
    searches: body.searches,
    seconds: body.seconds,
    pages: body.pages,
    characters: body.characters,
    images: body.images,
    tier: body.tier,
  };
}
