/** Gemini's own schema language (a part of OpenAPI 3.0 with upper-case types) as JSON Schema. */
import { InvalidRequestError } from "../errors.ts";
import { isRecord, type Json } from "../json.ts";

/** Deeper than any schema a provider accepts; a hostile one must not exhaust the stack. */
const MAX_DEPTH = 64;

export function toJsonSchema(schema: Json, path: string, depth = 0): Record<string, unknown> {
  if (depth > MAX_DEPTH) throw new InvalidRequestError(path, `${path} is nested too deeply`);
  const isNullable = schema["nullable"] === true;
  // `fromEntries` defines properties, so that a key named __proto__ stays a plain key.
  return Object.fromEntries(
    Object.entries(schema).flatMap(([key, value]): [string, unknown][] => {
      if (key === "nullable" || key === "propertyOrdering") return [];
      if (key === "type" && typeof value === "string") {
        const type = value.toLowerCase();
        return [[key, isNullable ? [type, "null"] : type]];
      }
      if (key === "properties" && isRecord(value)) {
        const properties = Object.entries(value).map(([name, inner]) => [name, convert(inner, path, depth)]);
        return [[key, Object.fromEntries(properties)]];
      }
      if ((key === "anyOf" || key === "oneOf") && Array.isArray(value)) {
        return [[key, value.map((inner: unknown) => convert(inner, path, depth))]];
      }
      return [[key, key === "items" ? convert(value, path, depth) : value]];
    }),
  );
}

function convert(value: unknown, path: string, depth: number): unknown {
  return isRecord(value) ? toJsonSchema(value, path, depth + 1) : value;
}
