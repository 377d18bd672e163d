import { InvalidRequestError } from "./errors.ts";

/** Deeper than any schema or argument a provider accepts, and far from the depth at which serialising overflows the stack. */
const MAX_DEPTH = 200;

/** Throws if `value` is nested more deeply than any real request. */
export function checkDepth(value: unknown, depth = 0): void {
  if (typeof value !== "object" || value === null) return;
  if (depth > MAX_DEPTH) throw new InvalidRequestError("body", "the body is nested too deeply");
  if (Array.isArray(value)) for (const inner of value) checkDepth(inner, depth + 1);
  else for (const key in value) checkDepth((value as Record<string, unknown>)[key], depth + 1);
}
