import { vi } from "vitest";

/** Waits until the check passes. The limit allows for a busy machine; the duration is not asserted. */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 600_000, interval: 20 });
}
