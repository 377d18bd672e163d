/**
 * The turn that the running code belongs to. The answer follows promises and timers, so code that outlives its turn is still known as that
 * turn's code.
 *
 * The store is a property of `globalThis` under a registered symbol: a module that another loader loaded (a test runner's, for example)
 * has its own copy of this file and must find the same store.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Turn } from "./turn.ts";

const KEY = Symbol.for("signalbox.current-turn");
const holder = globalThis as { [KEY]?: AsyncLocalStorage<Turn> };

const store = (holder[KEY] ??= new AsyncLocalStorage<Turn>());

export function currentTurn(): Turn | undefined {
  return store.getStore();
}

export function runInTurn<Subject, T>(turn: Turn, work: (subject: Subject) => T, subject: Subject): T {
  return store.run(turn, work, subject);
}

/** Throws when the running code belongs to a turn whose runtime has ended: such code can no longer send. */
export function requirePresent(): void {
  const gone = store.getStore()?.life.gone;
  if (gone !== undefined && gone !== null) throw gone();
}

/** Runs work that belongs to no turn: the start of the next turn, timers of the runtime. */
export function runOutsideTurns<T>(work: () => T): T {
  return store.exit(work);
}
