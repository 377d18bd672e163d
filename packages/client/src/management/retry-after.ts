/** Parses a `Retry-After` header (RFC 9110, section 10.2.3), seconds or a date, to milliseconds. Null if absent or invalid. */
export function parseRetryAfter(text: string | null, now: number): number | null {
  if (text === null) return null;
  if (/^\d+$/.test(text.trim())) return Number(text) * 1000;
  const time = Date.parse(text);
  return Number.isNaN(time) ? null : Math.max(0, time - now);
}
