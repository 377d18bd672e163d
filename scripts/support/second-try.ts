/**
 * Test files that `npm test` runs once more, alone, after all others: on a machine that pauses, or is short of processor time, a test can fail although
 * nothing is wrong. The whole file is run, so that nothing of the first try is left (decision 0253).
 *
 * Also files that were not run because their worker did not start within a minute, which cannot be changed.
 */
import { writeFileSync } from "node:fs";
import type { Reporter } from "vitest/node";

/** The file that the list is written to. */
export const SECOND_TRY_VARIABLE = "SIGNALBOX_TEST_SECOND_TRY";
/** One lost write, one stranger let in, one broken rule is a defect. */
const ONE_TRY = /\/test\/(?:faults|hostile|chaos)\//;
/** If more files fail, the machine is not the reason. */
const MAX_FAILED = 20;
const NOT_STARTED = "[vitest-pool]: Failed to start ";

interface RunFile {
  readonly moduleId: string;
  state(): string;
}

export interface SecondTry {
  readonly failed: readonly string[];
  readonly notStarted: readonly string[];
}

export class SecondTryReporter implements Reporter {
  readonly #files = new Set<string>();

  onTestRunStart(files: readonly { readonly moduleId: string }[]): void {
    for (const { moduleId } of files) this.#files.add(moduleId);
  }

  onTestRunEnd(files: readonly RunFile[], errors: readonly { readonly message: string }[]): void {
    const list = process.env[SECOND_TRY_VARIABLE];
    if (list === undefined || !errors.every(({ message }) => message.startsWith(NOT_STARTED))) return;
    const inState = (state: string) =>
      files.filter((file) => file.state() === state).map(({ moduleId }) => moduleId);
    const failed = inState("failed");
    if (failed.length > MAX_FAILED || failed.some((file) => ONE_TRY.test(file))) return;
    const queued = new Set(inState("queued"));
    const known = new Set(files.map(({ moduleId }) => moduleId));
    const notStarted = [...this.#files].filter((file) => queued.has(file) || !known.has(file));
    if (failed.length + notStarted.length === 0) return;
    writeFileSync(list, JSON.stringify({ failed, notStarted } satisfies SecondTry));
  }
}
