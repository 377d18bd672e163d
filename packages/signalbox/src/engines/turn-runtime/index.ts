/** Turns on a transactional database, with outputs that leave only when they are durable. `turn-runtime.ts` is the interface. */
export { afterMicrotasks } from "./after-microtasks.ts";
export { currentTurn, requirePresent, runOutsideTurns } from "./current-turn.ts";
export type { OutputGate } from "./output-gate.ts";
export { noteBody, notePendingTimers, PendingTimers, type TimerOwner } from "./pending-timers.ts";
export type { Participant, Transactions } from "./transactions.ts";
export { TurnRuntime } from "./turn-runtime.ts";
export type { Turn, TurnOrigin, TurnSpec } from "./turn.ts";
