import { vi } from "vitest";

/** Waits until the check passes, as long as a busy machine may need; how long it takes is never the question. */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 20_000, interval: 20 });
}
