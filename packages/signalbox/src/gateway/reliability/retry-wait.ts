/** How long to wait before another try of the same target. */
import type { AttemptPolicy } from "../step/attempt-policy.ts";

/**
 * Reads `retry-after-ms`, or `retry-after` in seconds or as a date (RFC 9110, section 10.2.3). Null when neither is there or valid.
 * `nowMs` is the time of day.
 */
export function readRetryAfter(rawHeaders: readonly string[], nowMs: number): number | null {
  let after: number | null = null;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? "";
    if (name.length !== 11 && name.length !== 14) continue;
    const value = (rawHeaders[i + 1] ?? "").trim();
    switch (name.toLowerCase()) {
      case "retry-after-ms":
        // More exact than seconds, so it takes precedence.
        if (/^\d{1,12}(?:\.\d+)?$/.test(value)) return Math.ceil(Number(value));
        break;
      case "retry-after":
        after ??= toDelay(value, nowMs);
    }
  }
  return after;
}

function toDelay(value: string, nowMs: number): number | null {
  if (/^\d{1,9}(?:\.\d+)?$/.test(value)) return Math.ceil(Number(value) * 1000);
  const date = /^[A-Z][a-z]{2,8},? /.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(date) ? null : Math.max(0, date - nowMs);
}

const RETRY_INFO = /"@type"\s*:\s*"type\.googleapis\.com\/google\.rpc\.RetryInfo"/;
const RETRY_DELAY = /"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d{1,9})?)s"/;

/** Reads the `RetryInfo` of Google's error details, which stands in the body and not in a header. Null when it is not there. */
export function readRetryInfo(body: Buffer): number | null {
  const text = body.toString("latin1");
  const seconds = RETRY_INFO.test(text) ? RETRY_DELAY.exec(text)?.[1] : undefined;
  return seconds === undefined ? null : Math.ceil(Number(seconds) * 1000);
}

/**
 * The delay before attempt `next`; 2 is the first retry. A random part of the backoff ("full jitter"): callers that failed together must
 * not return together. `random` is in [0, 1).
 */
export function backoffBefore(
  next: number,
  { backoff, retryDelayMs }: AttemptPolicy,
  random: number,
): number {
  const retries = next - 1;
  const factor = backoff === "constant" ? 1 : backoff === "linear" ? retries : 2 ** (retries - 1);
  return Math.round(retryDelayMs * factor * random);
}
