/** The cause of a failure as all events have it that failed for it: without ids, numbers and quoted values, which differ from event to event. */

const MAX_LENGTH = 200;
/** Ids (UUID, ULID, long hexadecimal texts), quoted texts, and numbers other than a status. */
const VARIABLE =
  /[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9A-HJKMNP-TV-Z]{26}\b|\b[0-9a-f]{16,}\b|"[^"]{0,200}"|'[^']{0,200}'|\b\d+(?:\.\d+)*\b/gi;
const ANSWERED = /^the (?:receiver|agent) answered \d{3}$/;

export function causeOf(reason: string | null): string {
  const text = reason ?? "unknown";
  if (ANSWERED.test(text)) return text;
  const [line = ""] = text.split("\n", 1);
  return line.replaceAll(VARIABLE, "…").slice(0, MAX_LENGTH);
}
