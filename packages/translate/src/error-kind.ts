import { isRecord, textOrNull, type Json } from "./json.ts";
import type { ErrorKind } from "./neutral/neutral-error.ts";

/** The kind that an HTTP status stands for. */
export function errorKindOf(status: number): ErrorKind {
  switch (status) {
    case 401:
      return "authentication";
    case 402:
      return "billing";
    case 403:
      return "permission";
    case 404:
      return "not_found";
    case 408:
    case 504:
      return "timeout";
    case 413:
      return "too_large";
    case 429:
      return "rate_limit";
    case 503:
    case 529:
      return "overloaded";
    default:
      return status >= 500 ? "server" : "invalid_request";
  }
}

/** A provider's page of HTML or text is repeated up to this length. */
const MAX_TEXT = 1000;

/** A message in a body that does not have the shape of its dialect: other JSON, text, or nothing. */
export function looseMessage(status: number, body: unknown): string {
  if (typeof body === "string" && body.trim() !== "") return body.slice(0, MAX_TEXT);
  if (isRecord(body)) {
    const found = messageIn(body) ?? (isRecord(body["error"]) ? messageIn(body["error"]) : null);
    if (found !== null) return found;
  }
  return `the provider answered with status ${status}`;
}

function messageIn(holder: Json): string | null {
  for (const key of ["message", "error", "detail", "msg"]) {
    const text = textOrNull(holder[key]);
    if (text !== null) return text;
  }
  return null;
}
