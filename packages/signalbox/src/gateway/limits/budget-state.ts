/** What of each limit is used, for people and programs that manage it. */
import { z } from "zod";
import { type LimitRule, MICRO } from "./limit-rule.ts";
import type { NamedBucket } from "./rule-buckets.ts";

export const budgetState = z.object({
  rule: z.string(),
  type: z.enum(["cost", "requests", "tokens", "parallel"]),
  /** US dollars, requests, tokens or calls. */
  limit: z.number(),
  window: z.string(),
  is_soft: z.boolean(),
  /** The metadata values that the amounts belong to, as JSON; null for a rule that does not partition. */
  partition: z.string().nullable(),
  used: z.number(),
  reserved: z.number(),
  remaining: z.number(),
  reset_at: z.iso.datetime().nullable(),
});

export type BudgetState = z.input<typeof budgetState>;

/** `wallOffset` is the difference between the system clock and the clock of the bucket. */
export function toBudgetState(
  rule: LimitRule,
  bucket: NamedBucket,
  now: number,
  wallOffset: number,
): BudgetState {
  const unit = rule.kind === "cost" ? MICRO : 1;
  const used = rule.kind === "parallel" ? 0 : bucket.used(now);
  const resetAt = rule.kind === "parallel" ? null : bucket.resetAt(now);
  const space = bucket.name.indexOf(" ");
  return {
    rule: rule.id,
    type: rule.kind,
    limit: rule.limit / unit,
    window: rule.kind === "parallel" ? "at a time" : rule.window.text,
    is_soft: rule.isSoft,
    partition: space === -1 ? null : bucket.name.slice(space + 1),
    used: used / unit,
    reserved: bucket.reserved / unit,
    remaining: Math.max(0, rule.limit - used - bucket.reserved) / unit,
    reset_at: resetAt === null ? null : new Date(resetAt + wallOffset).toISOString(),
  };
}
