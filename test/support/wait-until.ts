/** Repeats a read until its value matches, and returns the value. The test's time limit ends a wait in vain. */
import { setTimeout as sleep } from "node:timers/promises";

export async function waitUntil<T>(
  read: () => T | Promise<T>,
  matches: (value: T) => boolean,
  intervalMs = 5,
): Promise<T> {
  for (;;) {
    const value = await read();
    if (matches(value)) return value;
    await sleep(intervalMs);
  }
}
