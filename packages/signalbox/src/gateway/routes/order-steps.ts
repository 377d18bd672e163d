/**
 * Puts the steps of a call into the order in which they are tried.
 *
 * | strategy        | order                                                                                              |
 * | --------------- | -------------------------------------------------------------------------------------------------- |
 * | `fallback`      | as given                                                                                           |
 * | `weighted`      | at random; a step with twice the weight comes first twice as often                                 |
 * | `sticky`        | as `weighted`, but always the same for the same session, whichever other steps are added or removed |
 * | `least-latency` | shortest average time to the answer first; targets that were not measured yet before all others    |
 * | `least-cost`    | lowest expected price first; unknown prices last                                                   |
 *
 * Steps that compare equal keep the given order.
 */
import { createHash } from "node:crypto";
import { NO_USAGE } from "../../engines/relay/index.ts";
import type { PriceTable } from "../limits/price-table.ts";
import type { CallOptions } from "../step/call-options.ts";
import type { Step } from "../step/step.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { TargetLatencies } from "../reliability/target-latencies.ts";

export interface StepOrderParts {
  readonly prices: PriceTable;
  readonly latencies: TargetLatencies;
}

/** Only compared, between steps and with what a route says, so that it need not be exact. */
const BYTES_PER_TOKEN = 4;
const ASSUMED_OUTPUT_TOKENS = 1000;

/** Of JSON. */
export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** Numbers the steps as given (`Step.place`) and sorts them. */
export function orderSteps(
  steps: readonly Step[],
  gateway: Gateway,
  options: CallOptions,
  { prices, latencies }: StepOrderParts,
): readonly Step[] {
  const { strategy } = options;
  if (strategy === undefined || strategy === "fallback" || steps.length < 2) return steps;
  const session = strategy === "sticky" ? sessionOf(options) : null;
  const rank = (step: Step, i: number): number => {
    switch (strategy) {
      case "least-latency":
        return latencies.find(gateway, step) ?? -1;
      case "least-cost":
        return expectedCost(prices, step);
      default:
        return drawRank(
          session === null ? Math.random() : shareOf(session, `${step.provider.slug}/${step.model}/${i}`),
          step.policy.weight,
        );
    }
  };
  return steps
    .map((step, i) => ({ step: { ...step, place: i }, rank: rank(step, i) }))
    .sort((a, b) => a.rank - b.rank || a.step.place - b.step.place)
    .map(({ step }) => step);
}

/** Exponentially distributed with the weight as its rate: the smallest of several is the k-th with a probability of its share. */
function drawRank(uniform: number, weight: number): number {
  return -Math.log(1 - uniform) / weight;
}

/** What makes calls belong together: the session, else the user that the metadata names; null for neither. */
export function sessionOf({ sessionId, metadata }: CallOptions): string | null {
  if (sessionId !== undefined) return sessionId;
  return metadata === undefined ? null : userOf(JSON.parse(metadata) as Record<string, unknown>);
}

export function userOf(metadata: Readonly<Record<string, unknown>> | undefined): string | null {
  const user = metadata?.["user_id"];
  return typeof user === "string" || typeof user === "number" ? String(user) : null;
}

/** A number in [0, 1) that is the same for the same texts, and evenly spread over different ones. */
export function shareOf(session: string, name: string): number {
  const hash = createHash("sha256").update(session).update("\n").update(name).digest();
  return hash.readUIntBE(0, 6) / 2 ** 48;
}

function expectedCost(prices: PriceTable, { provider, model, upstream, maxOutputTokens }: Step): number {
  const { body } = upstream;
  const tokensIn = body.kind === "whole" ? estimateTokens(body.bytes.length) : 0;
  const usage = { ...NO_USAGE, tokensIn, tokensOut: maxOutputTokens ?? ASSUMED_OUTPUT_TOKENS };
  return prices.costOf(provider.slug, model, usage) ?? Number.MAX_VALUE;
}
