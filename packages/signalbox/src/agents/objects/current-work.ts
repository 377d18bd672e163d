/** The object whose code runs, as far as code without a `ctx` needs it. */
import { currentTurn, type TimerOwner } from "../../engines/turn-runtime/index.ts";
import type { ObjectId } from "./object-types.ts";

/** The owner of a turn: the instance of the object. */
export interface ObjectWork extends TimerOwner {
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
const NAMES = new WeakMap<
  object,
  { readonly agent: string; readonly id: string; readonly name: string | null }
>();

export function nameWork(work: ObjectWork, agent: string, id: ObjectId): void {
  NAMES.set(work, { agent, id: String(id), name: id.name ?? null });
}

/** The name of an object in memory, null if it has none; undefined before it is constructed. */
export function nameOfWork(work: object): string | null | undefined {
  return NAMES.get(work)?.name;
}

/** The object whose code runs, as `agent/name`; null for code that belongs to no object. */
export function currentObject(): string | null {
  const work = currentWork();
  const named = work === undefined ? undefined : NAMES.get(work);
  return named === undefined ? null : `${named.agent}/${named.name ?? named.id}`;
}
