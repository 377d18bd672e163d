/** Work that its storage has ended: the work did not fail. */
import { SignalboxError } from "@signalbox/protocol";

/**
 * An attempt that the storage has ended is repeated without being counted, so many times in a row. Work that fills the disk by itself ends in the same way,
 * and must run out of attempts.
 */
export const MAX_CUT_OFFS = 20;

/** True if storage was unavailable for a while: that of the instance, or one that it used. */
export function isStorageFailure(error: unknown): boolean {
  return error instanceof SignalboxError && error.id === "storage_unavailable";
}
