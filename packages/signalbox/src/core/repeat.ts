/**
 * Work that is done again and again: flushing, pruning, looking again.
 *
 * Invariants:
 * 1. Runs never overlap: the interval passes between the end of one and the beginning of the next.
 * 2. A run that fails is reported to `onError` and followed by the next; nothing rejects unheard.
 * 3. The timer does not keep the process alive.
 * 4. `stop` resolves when the run under way, if any, has ended; none begins after the call.
 */
export interface Repetition {
  stop(): Promise<void>;
}

export function repeat(
  intervalMs: number,
  task: () => void | Promise<void>,
  onError: (error: unknown) => void,
): Repetition {
  let isStopped = false;
  let running: Promise<void> = Promise.resolve();
  let timer = setTimeout(begin, intervalMs).unref();

  function begin(): void {
    running = runOnce(task, onError).then(() => {
      if (!isStopped) timer = setTimeout(begin, intervalMs).unref();
    });
  }

  return {
    stop() {
      isStopped = true;
      clearTimeout(timer);
      return running;
    },
  };
}

async function runOnce(task: () => void | Promise<void>, onError: (error: unknown) => void): Promise<void> {
  try {
    await task();
  } catch (error) {
    onError(error);
  }
}
