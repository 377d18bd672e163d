/** Decides whether an amount fits a bucket, and describes why not: error, headers and the fields that programs read. */
import { SignalboxError } from "@signalbox/protocol";
import type { AmountBucket } from "./amount-bucket.ts";
import { type LimitRule, MICRO, type Need, RATE_RULE } from "./limit-rule.ts";

/** The shortest wait: running calls may end at any moment, usually below their reservation. */
const SOON_MS = 1000;

export interface Refusal {
  /** Until the call may pass; infinite when waiting does not help. */
  readonly waitMs: number;
  /** `wallOffset` is the difference between the system clock and the monotonic one. */
  toError(wallOffset: number): SignalboxError;
}

/** Null when the amount fits. */
export function refuse(rule: LimitRule, bucket: AmountBucket, need: Need, now: number): Refusal | null {
  if (rule.isSoft) return null;
  const { limit } = rule;
  const { amount, isBounded, runsAlone = false } = need;
  const used = rule.kind === "parallel" ? 0 : bucket.used(now);
  const isAlone = bucket.reserved === 0;
  const fits = used + bucket.reserved + amount <= limit && (isAlone || !runsAlone);
  const mayRunAlone = !isBounded && isAlone && used < limit;
  return fits || mayRunAlone ? null : describeRefusal(rule, bucket, need, now);
}

/** Describes the refusal of an amount, whether it fits or not. */
export function describeRefusal(rule: LimitRule, bucket: AmountBucket, need: Need, now: number): Refusal {
  const { limit } = rule;
  const { amount, isBounded } = need;
  const used = rule.kind === "parallel" ? 0 : bucket.used(now);
  // A call without an output limit may run as soon as anything is left, others when their whole amount fits.
  const allowed = isBounded ? limit - amount : Math.ceil(limit) - 1;
  const freed = allowed < 0 ? Number.POSITIVE_INFINITY : bucket.msUntilUsedIs(allowed, now);
  const waitMs = Math.max(freed, SOON_MS);
  const state: RefusedState = { rule, bucket, need, used, waitMs, now };
  return {
    waitMs,
    toError: (wallOffset) => (rule.kind === "cost" ? spendError(state) : rateError(state, wallOffset)),
  };
}

interface RefusedState {
  readonly rule: LimitRule;
  readonly bucket: AmountBucket;
  readonly need: Need;
  readonly used: number;
  readonly waitMs: number;
  readonly now: number;
}

function spendError({ rule, bucket, need, used, waitMs, now }: RefusedState): SignalboxError {
  const { provider, model } = need.step;
  const why = need.isBounded && need.amount > rule.limit ? "; this call alone may cost more than that" : "";
  const resetAt = bucket.resetAt(now);
  return new SignalboxError("gateway_spend_limit", {
    message: `Spend limit exceeded: rule ${rule.name} allows $${rule.limit / MICRO} ${rule.window.text}, provider ${provider}, model ${model}${why}`,
    headers: {
      ...retryAfter(waitMs),
      "gw-aig-budget-remaining": String(Math.max(0, rule.limit - used - bucket.reserved) / MICRO),
      ...(resetAt === null ? {} : { "gw-aig-budget-reset": new Date(resetAt).toISOString() }),
    },
    fields: {
      rule: rule.name,
      limit: rule.limit / MICRO,
      spent: used / MICRO,
      reserved: bucket.reserved / MICRO,
      reset_at: resetAt === null ? null : new Date(resetAt).toISOString(),
    },
  });
}

function rateError({ rule, bucket, used, waitMs, now }: RefusedState, wallOffset: number): SignalboxError {
  const left = Math.max(0, rule.limit - used - bucket.reserved);
  const unit = rule.kind === "parallel" ? "parallel calls" : rule.kind;
  const per = rule.kind === "parallel" ? "at a time" : rule.window.text;
  const resetMs = Number.isFinite(waitMs) ? waitMs : 0;
  return new SignalboxError("gateway_rate_limited", {
    // The hosted original says no more about its own limit.
    ...(rule.id === RATE_RULE
      ? {}
      : { message: `Rate limited: rule ${rule.name} allows ${rule.limit} ${unit} ${per}` }),
    headers: { ...retryAfter(waitMs), ...rateHeaders(rule.kind, rule.limit, left, resetMs) },
    fields: {
      rule: rule.name,
      limit: rule.limit,
      used: used + bucket.reserved,
      reset_at: Number.isFinite(waitMs) ? new Date(now + wallOffset + waitMs).toISOString() : null,
    },
  });
}

/** The names that OpenAI uses; a reset is the time until a call may pass. */
export function rateHeaders(
  kind: string,
  limit: number,
  left: number,
  resetMs: number,
): Record<string, string> {
  return {
    [`x-ratelimit-limit-${kind}`]: String(limit),
    [`x-ratelimit-remaining-${kind}`]: String(left),
    [`x-ratelimit-reset-${kind}`]: `${Math.ceil(resetMs / 1000)}s`,
  };
}

function retryAfter(waitMs: number): Record<string, string> {
  return Number.isFinite(waitMs) ? { "retry-after": String(Math.ceil(waitMs / 1000)) } : {};
}
