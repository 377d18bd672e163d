/** When a failed attempt is repeated, and which statuses are. */
import type { RetrySettings } from "../../config/webhook-route-keys.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const MAX_DELAY_MS = 24 * HOUR;
/** Eight attempts in about 28 hours, as queued webhooks of agents have. */
const DEFAULT_DELAYS_MS = [5000, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR];
/** Events that failed together must not return together. */
const JITTER = 0.1;

export interface RetryPlan {
  /** Milliseconds until the next attempt; null when `tries` attempts were all. */
  delayAfter(tries: number, random: number): number | null;
  isRetried(status: number): boolean;
}

export function createRetryPlan(settings: RetrySettings | undefined): RetryPlan {
  return {
    delayAfter(tries, random) {
      const delay = delayOf(settings, tries);
      return delay === null ? null : Math.round(Math.min(delay * (1 + JITTER * random), MAX_DELAY_MS));
    },
    isRetried: createStatusTest(settings?.statuses),
  };
}

function delayOf(settings: RetrySettings | undefined, tries: number): number | null {
  if (settings === undefined) return DEFAULT_DELAYS_MS[tries - 1] ?? null;
  if (settings.strategy === "list") return settings.intervalsMs[tries - 1] ?? null;
  if (tries > settings.count) return null;
  return settings.strategy === "linear" ? settings.intervalMs : settings.intervalMs * 2 ** (tries - 1);
}

/** A status is retried if one of the expressions names it, or there are only exceptions (`!404`), and no exception does. */
function createStatusTest(expressions: RetrySettings["statuses"]): (status: number) => boolean {
  if (expressions === undefined) return () => true;
  const texts = expressions.map(String);
  const excepted = new Set(texts.filter((text) => text.startsWith("!")).map((text) => Number(text.slice(1))));
  const ranges = texts.filter((text) => !text.startsWith("!")).map(toRange);
  return (status) =>
    !excepted.has(status) &&
    (ranges.length === 0 || ranges.some(([from, to]) => status >= from && status <= to));
}

function toRange(text: string): readonly [from: number, to: number] {
  if (text.startsWith(">=")) return [Number(text.slice(2)), 599];
  if (text.startsWith(">")) return [Number(text.slice(1)) + 1, 599];
  if (text.startsWith("<=")) return [0, Number(text.slice(2))];
  if (text.startsWith("<")) return [0, Number(text.slice(1)) - 1];
  const [from = "", to = from] = text.split("-");
  return [Number(from), Number(to)];
}
