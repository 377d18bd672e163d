/**
 * Which turn the running code belongs to. It follows promises and timers, so code that a turn left behind is still known as that
 * turn's, and a turn that was cut can be kept from writing.
 *
 * The store hangs on `globalThis` under a registered symbol: an agent's module may come through another loader than the runtime
 * (a test runner's, say) and must find the same one.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Turn } from "./turn.ts";

const KEY = Symbol.for("signalbox.current-turn");
const holder = globalThis as { [KEY]?: AsyncLocalStorage<Turn> };

const store = (holder[KEY] ??= new AsyncLocalStorage<Turn>());

export function currentTurn(): Turn | undefined {
  return store.getStore();
}

export function runInTurn<T>(turn: Turn, work: () => T): T {
  return store.run(turn, work);
}

/** Runs work that belongs to no turn: starting the next turn, timers of the runtime. */
export function runOutsideTurns<T>(work: () => T): T {
  return store.exit(work);
}
