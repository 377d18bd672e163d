/** When a limit is used up if its use goes on as it has since the period began. */
import type { BudgetState } from "@signalbox/client";

const DAY_MS = 86_400_000;
/** Before this share of a period, the pace is that of a few calls. */
const MIN_SHARE = 0.02;

/**
 * Milliseconds since the epoch; null if the limit lasts until its period ends, or if that cannot be said: a sliding window and prepaid credit have
 * no beginning, and calls at the same time no pace.
 */
export function usedUpAt(budget: BudgetState, now: number): number | null {
  const { used, reserved, limit, window, reset_at: resetAt } = budget;
  if (resetAt === null || limit <= 0) return null;
  const end = Date.parse(resetAt);
  const start = startOf(window, end);
  if (start === null || now <= start || now - start < MIN_SHARE * (end - start)) return null;
  const spent = used + reserved;
  if (spent <= 0 || spent >= limit) return null;
  const at = now + ((limit - spent) * (now - start)) / spent;
  return at < end ? at : null;
}

/** The beginning of the period that ends then. `window` in the words of the service. */
function startOf(window: string, end: number): number | null {
  const seconds = /^per (\d+) s \(fixed\)/.exec(window)?.[1];
  if (seconds !== undefined) return end - Number(seconds) * 1000;
  switch (/^per (day|week|month)\b/.exec(window)?.[1]) {
    case "day":
      return end - DAY_MS;
    case "week":
      return end - 7 * DAY_MS;
    case "month":
      return monthBefore(end);
    default:
      return null;
  }
}

/** A month ends at midnight of its zone, which is the day before or after in UTC: half a day earlier, both are in the month itself. */
function monthBefore(end: number): number {
  const inside = new Date(end - DAY_MS);
  const days = new Date(Date.UTC(inside.getUTCFullYear(), inside.getUTCMonth() + 1, 0)).getUTCDate();
  return end - days * DAY_MS;
}
