const NAMES = ["SIGINT", "SIGTERM"] as const;

/** The user, or the system, has ended a command that did not complete. */
export class InterruptedError extends Error {
  override readonly name = "InterruptedError";
}

/** Aborts on SIGINT or SIGTERM, for commands that run until interrupted. */
export function stopSignal(): AbortSignal {
  const controller = new AbortController();
  for (const name of NAMES) process.once(name, () => controller.abort());
  return controller.signal;
}

/**
 * Runs `work` with a signal that aborts with `InterruptedError` on SIGINT or SIGTERM, so that the work removes its temporary files. The second signal
 * ends the process at once.
 */
export async function untilInterrupted<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const stop = (name: NodeJS.Signals) => controller.abort(new InterruptedError(`interrupted by ${name}`));
  for (const name of NAMES) process.once(name, stop);
  try {
    return await work(controller.signal);
  } finally {
    for (const name of NAMES) process.off(name, stop);
  }
}
