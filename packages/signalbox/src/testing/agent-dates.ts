/**
 * `Date` in the code of agents: while a test runs agents, `Date.now()` and `new Date()` inside a turn give the time of the test's clock. Code
 * outside of turns, such as the test itself and its runner, sees the time of the system.
 */
import { currentTurn } from "../engines/turn-runtime/index.ts";
import { TestClock } from "./test-clock.ts";

const SystemDate = globalThis.Date;
let users = 0;

const AgentDate = new Proxy(SystemDate, {
  apply: () => new SystemDate(now()).toString(),
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget) as object,
  get: (target, key, receiver) => (key === "now" ? now : (Reflect.get(target, key, receiver) as unknown)),
});

function now(): number {
  const owner: { readonly clock?: unknown } | undefined = currentTurn()?.owner;
  return owner?.clock instanceof TestClock ? owner.clock.now() : SystemDate.now();
}

/** The returned function ends it. */
export function useAgentDates(): () => void {
  users += 1;
  // A test runner may have put its own in place; it then decides.
  if (globalThis.Date === SystemDate) globalThis.Date = AgentDate;
  let isUsed = true;
  return () => {
    if (!isUsed) return;
    isUsed = false;
    users -= 1;
    if (users === 0 && globalThis.Date === AgentDate) globalThis.Date = SystemDate;
  };
}
