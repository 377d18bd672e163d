/** A database that did not answer in time, because the whole machine stood still: nothing was lost, and callers try again. */
import { SignalboxError } from "@signalbox/protocol";
import { InstanceFencedError } from "../../packages/signalbox/src/engines/instance-store/index.ts";

/** Exit code of a test's process. */
export const STORAGE_AWAY = 75;

/** Whatever became of a commit: the next open of the instance shows it. */
export function isStorageAway(error: unknown): boolean {
  if (error instanceof InstanceFencedError) return error.fence === "unknown";
  return error instanceof SignalboxError && error.id === "storage_unavailable";
}

export async function whenStorageIsBack<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isStorageAway(error)) throw error;
    }
  }
}
