import { InvalidRequestError } from "./errors.ts";

/** Deeper than any schema or argument a provider accepts, and far from the depth at which serialising overflows the stack. */
const MAX_DEPTH = 200;
/** Objects and lists: more than the longest conversation has. The time of a translation depends on their number. */
const MAX_NODES = 100_000;

/** Throws if `value` is nested more deeply, or has more parts, than any real request. */
export function checkShape(value: unknown): void {
  let nodes = 0;
  const check = (inner: unknown, depth: number): void => {
    if (typeof inner !== "object" || inner === null) return;
    nodes += 1;
    if (depth > MAX_DEPTH) throw new InvalidRequestError("body", "the body is nested too deeply");
    if (nodes > MAX_NODES)
      throw new InvalidRequestError("body", `the body has more than ${MAX_NODES} objects and lists`);
    if (Array.isArray(inner)) for (const item of inner) check(item, depth + 1);
    else for (const key in inner) check((inner as Record<string, unknown>)[key], depth + 1);
  };
  check(value, 0);
}
