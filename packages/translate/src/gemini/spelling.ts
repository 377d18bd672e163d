/** Gemini accepts its fields in camelCase and in snake_case; the documentation uses both. */
import type { Json } from "../json.ts";

/** The value of `field`, given in camelCase, in either spelling. */
export function pick(holder: Json, field: string): unknown {
  return holder[field] ?? holder[toSnakeCase(field)];
}

export function toCamelCase(field: string): string {
  return field.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function toSnakeCase(field: string): string {
  return field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
