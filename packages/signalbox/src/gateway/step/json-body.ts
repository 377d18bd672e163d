/** The JSON of a request body. Both functions throw `gateway_malformed_request`. */
import { malformed } from "./malformed.ts";

export function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    throw malformed("The body is not valid JSON");
  }
}

export function parseFields(bytes: Buffer): Record<string, unknown> {
  const value = parseJson(bytes);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw malformed("The body must be a JSON object");
  }
  return value as Record<string, unknown>;
}
