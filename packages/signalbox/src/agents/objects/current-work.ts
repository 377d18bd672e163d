/** The object whose code runs, as far as code without a `ctx` needs it. */
import { currentTurn } from "../../engines/turn-runtime/index.ts";

/** The owner of a turn: the instance of the object. */
export interface ObjectWork {
  /** Keeps the object in memory until the promise has settled. */
  waitUntil(work: Promise<unknown>): void;
  /** Keeps the object in memory until the returned function is called. */
  hold(): () => void;
  /** Calls back when everything that the object has written so far is durable, in order with its other outputs. */
  output(release: () => void): void;
  /** Resolves when everything that the object has written so far is durable. */
  passGate(): Promise<void>;
  /** Runs the function as an event of the object; resolves when its writes are durable. */
  enter<T>(label: string, body: () => T | Promise<T>): Promise<T>;
}

/** Undefined for code that belongs to no object. */
export function currentWork(): ObjectWork | undefined {
  const owner = currentTurn()?.owner;
  return owner !== undefined && "enter" in owner ? (owner as ObjectWork) : undefined;
}

/** Names of objects for people, by the owner of their turns. */
const NAMES = new WeakMap<ObjectWork, string>();

export function nameWork(work: ObjectWork, name: string): void {
  NAMES.set(work, name);
}

/** The object whose code runs, as `agent/name`; null for code that belongs to no object. */
export function currentObject(): string | null {
  const work = currentWork();
  return (work === undefined ? undefined : NAMES.get(work)) ?? null;
}
