/**
 * Runs a task periodically.
 *
 * Invariants:
 * 1. Runs never overlap: the interval is the time between the end of a run and the start of the next.
 * 2. The error of a failed run is passed to `onError`, and the next run follows.
 * 3. The timer does not keep the process alive.
 * 4. `stop` resolves when the current run, if any, has ended. No run begins after the call.
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
