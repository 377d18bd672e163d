/**
 * Calls back when the microtask queue is empty, that is, when all code that could run without a real wait has run.
 *
 * `process.nextTick` alone is not enough: called from a macrotask, it runs before the pending microtasks. A tick that a microtask queues
 * runs after the last of them.
 */
export function afterMicrotasks(callback: () => void): void {
  queueMicrotask(() => process.nextTick(callback));
}
