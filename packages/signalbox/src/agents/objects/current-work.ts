/** The object whose code runs, as far as code without a `ctx` needs it. */
import { currentTurn } from "../../engines/turn-runtime/index.ts";

/** The owner of a turn of an object. */
export interface ObjectWork {
  /** Keeps the object in memory until the promise has settled. */
  waitUntil(work: Promise<unknown>): void;
}

/** Undefined for code that belongs to no object. */
export function currentWork(): ObjectWork | undefined {
  const owner = currentTurn()?.owner as Partial<ObjectWork> | undefined;
  return typeof owner?.waitUntil === "function" ? (owner as ObjectWork) : undefined;
}
