/** Closes all parts of the service at the stop, even if closing one of them fails. */
import { repeat } from "../core/repeat.ts";
import { DataFolderError } from "../core/data-folder-error.ts";
import type { InstanceStore } from "../engines/instance-store/index.ts";

export interface Closer {
  close(): void | Promise<void> | undefined;
  /** `close` waits for the instance store, whose writes are paused while the disk is full. */
  readonly canStall?: boolean;
}

/** How long a stop waits for an instance store that cannot write. */
const STALLED_STOP_MS = 5000;

/** Closes in reverse order. Errors do not end the loop; the first one is thrown at the end. */
export async function closeAll(
  closers: readonly Closer[],
  store: Pick<InstanceStore, "problem"> | null,
): Promise<void> {
  const failures: unknown[] = [];
  const stall = store === null ? null : watchForStall(store);
  for (const { close, canStall } of closers.toReversed()) {
    try {
      const closing = close();
      await (canStall === true && stall !== null ? Promise.race([closing, stall.promise]) : closing);
    } catch (error) {
      failures.push(error);
    }
  }
  await stall?.end();
  if (failures.length > 0) throw failures[0];
}

/**
 * Rejects when the store has had a problem for `STALLED_STOP_MS`. Acknowledged writes are not lost: they are in the journal, and the next start
 * applies them to the files of the instances, as after a crash.
 */
function watchForStall(store: Pick<InstanceStore, "problem">): {
  readonly promise: Promise<never>;
  end(): Promise<void>;
} {
  const { promise, reject } = Promise.withResolvers<never>();
  // Prevents an unhandled rejection if no part waits for the promise.
  promise.catch(() => undefined);
  let since: number | null = null;
  const watch = repeat(
    STALLED_STOP_MS / 20,
    () => {
      since = store.problem === null ? null : (since ?? performance.now());
      if (since === null || performance.now() - since < STALLED_STOP_MS) return;
      reject(
        new DataFolderError(
          `stopped before the journal of the agents was checkpointed: ${store.problem}; no acknowledged write is lost`,
        ),
      );
    },
    reject,
  );
  return { promise, end: () => watch.stop() };
}
