/** Gemini's own schema language (a part of OpenAPI 3.0 with upper-case types) as JSON Schema. */
import { InvalidRequestError } from "../errors.ts";
import { isRecord, type Json } from "../json.ts";

/** Deeper than any schema a provider accepts; a hostile one must not exhaust the stack. */
const MAX_DEPTH = 64;

export function toJsonSchema(schema: Json, path: string, depth = 0): Record<string, unknown> {
  if (depth > MAX_DEPTH) throw new InvalidRequestError(path, `${path} is nested too deeply`);
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key === "type" && typeof value === "string") result["type"] = value.toLowerCase();
    else if (key === "nullable" || key === "propertyOrdering") continue;
    else if (key === "properties" && isRecord(value)) {
      result[key] = Object.fromEntries(
        Object.entries(value).map(([name, inner]) => [name, convert(inner, path, depth)]),
      );
    } else if ((key === "anyOf" || key === "oneOf") && Array.isArray(value)) {
      result[key] = value.map((inner: unknown) => convert(inner, path, depth));
    } else if (key === "items") result[key] = convert(value, path, depth);
    else result[key] = value;
  }
  if (schema["nullable"] === true && typeof result["type"] === "string")
    result["type"] = [result["type"], "null"];
  return result;
}

function convert(value: unknown, path: string, depth: number): unknown {
  return isRecord(value) ? toJsonSchema(value, path, depth + 1) : value;
}
