/** Stopping: every part is closed, also when another one cannot be. */
import { repeat } from "../core/repeat.ts";
import { DataFolderError } from "../core/data-folder-error.ts";
import type { InstanceStore } from "../engines/instance-store/index.ts";

export interface Closer {
  close(): void | Promise<void> | undefined;
  /** It waits for agents' storage, which may have no room for as long as the disk is full. */
  readonly canStall?: boolean;
}

/** How long a stop waits for agents' storage that cannot write before it leaves the rest to the journal. */
const STALLED_STOP_MS = 5000;

/** Last opened, first closed, each of them also when one before it failed; the first failure is thrown in the end. */
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
 * Rejects when the store has had a problem for as long as a stop waits. Nothing acknowledged is lost by leaving then: it is in the journal, and the
 * next start brings it to the instances' files, as after a kill.
 */
function watchForStall(store: Pick<InstanceStore, "problem">): {
  readonly promise: Promise<never>;
  end(): Promise<void>;
} {
  const { promise, reject } = Promise.withResolvers<never>();
  // Most of the time nobody waits for it.
  promise.catch(() => undefined);
  let since: number | null = null;
  const watch = repeat(
    STALLED_STOP_MS / 20,
    () => {
      since = store.problem === null ? null : (since ?? performance.now());
      if (since === null || performance.now() - since < STALLED_STOP_MS) return;
      reject(
        new DataFolderError(
          `stopped before the agents' journal was settled: ${store.problem}; nothing is lost`,
        ),
      );
    },
    reject,
  );
  return { promise, end: () => watch.stop() };
}
