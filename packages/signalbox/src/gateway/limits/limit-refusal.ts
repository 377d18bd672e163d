/** Decides whether an amount fits a bucket, and describes why not: error, headers and the fields that programs read. */
import { SignalboxError } from "@signalbox/protocol";
import type { Need } from "./grant.ts";
import { MICRO, RATE_RULE } from "./limit-rule.ts";

/** The shortest wait: running calls may end at any moment, usually below their reservation. */
const SOON_MS = 1000;
/** After this time limits that cannot be checked are asked again. */
const UNCHECKED_MS = 1000;

/** Why nothing was taken. */
export class Refusal {
  /** Until the call may pass; infinite when waiting does not help. */
  readonly waitMs: number;
  /** False when the limits could not be checked. */
  readonly isChecked: boolean;
  readonly #toError: () => SignalboxError;

  constructor(waitMs: number, isChecked: boolean, toError: () => SignalboxError) {
    this.waitMs = waitMs;
    this.isChecked = isChecked;
    this.#toError = toError;
  }

  /** Describes the rule as it is now. */
  toError(): SignalboxError {
    return this.#toError();
  }

  static unchecked(error: SignalboxError): Refusal {
    return new Refusal(UNCHECKED_MS, false, () => error);
  }
}

/** Null when the amount fits. `now` is that of the bucket's clock, `wall` that of the system clock. */
export function refuse(need: Need, now: number, wall: number): Refusal | null {
  const { rule, bucket, amount, isBounded, runsAlone } = need;
  const { limit } = rule;
  const used = rule.kind === "parallel" ? 0 : bucket.used(now);
  const isAlone = bucket.reserved === 0;
  const fits = used + bucket.reserved + amount <= limit && (isAlone || !runsAlone);
  const mayRunAlone = !isBounded && isAlone && used < limit;
  return fits || mayRunAlone ? null : describeRefusal(need, now, wall);
}

/** Describes the refusal of an amount, whether it fits or not. */
export function describeRefusal(need: Need, now: number, wall: number): Refusal {
  const { rule, bucket, amount, isBounded } = need;
  const { limit } = rule;
  const used = rule.kind === "parallel" ? 0 : bucket.used(now);
  // A call without an output limit may run as soon as anything is left, others when their whole amount fits.
  const allowed = isBounded ? limit - amount : Math.ceil(limit) - 1;
  const freed = allowed < 0 ? Number.POSITIVE_INFINITY : bucket.msUntilUsedIs(allowed, now);
  const waitMs = Math.max(freed, SOON_MS);
  return new Refusal(waitMs, true, () =>
    rule.kind === "cost" ? spendError(need, used, waitMs, now) : rateError(need, used, waitMs, wall),
  );
}

function spendError(
  { rule, bucket, amount, isBounded, step }: Need,
  used: number,
  waitMs: number,
  now: number,
): SignalboxError {
  const { provider, model } = step;
  const why = isBounded && amount > rule.limit ? "; this call alone may cost more than that" : "";
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

function rateError({ rule, bucket }: Need, used: number, waitMs: number, wall: number): SignalboxError {
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
      reset_at: Number.isFinite(waitMs) ? new Date(wall + waitMs).toISOString() : null,
    },
  });
}

/** The names that OpenAI uses; a reset is the time until a call may pass. */
function rateHeaders(kind: string, limit: number, left: number, resetMs: number): Record<string, string> {
  return {
    [`x-ratelimit-limit-${kind}`]: String(limit),
    [`x-ratelimit-remaining-${kind}`]: String(left),
    [`x-ratelimit-reset-${kind}`]: `${Math.ceil(resetMs / 1000)}s`,
  };
}

function retryAfter(waitMs: number): Record<string, string> {
  return Number.isFinite(waitMs) ? { "retry-after": String(Math.ceil(waitMs / 1000)) } : NO_RETRY;
}

/** SDKs of OpenAI and Anthropic repeat a call that got 429, unless this header says that it does not help. */
export const NO_RETRY = { "x-should-retry": "false" };
