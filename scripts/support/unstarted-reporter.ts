/**
 * Test files that were not run because their worker did not start within a minute, which cannot be changed: on a machine that is short of processor
 * time that happens to a file in hundreds. `npm test` runs them afterwards.
 */
import { writeFileSync } from "node:fs";
import type { Reporter } from "vitest/node";

/** The file that the list is written to. */
export const UNSTARTED_VARIABLE = "SIGNALBOX_TEST_UNSTARTED";
const MESSAGE = "[vitest-pool]: Failed to start ";

interface RunFile {
  readonly moduleId: string;
  state(): string;
}

export class UnstartedReporter implements Reporter {
  readonly #files = new Set<string>();

  onTestRunStart(files: readonly { readonly moduleId: string }[]): void {
    for (const { moduleId } of files) this.#files.add(moduleId);
  }

  onTestRunEnd(files: readonly RunFile[], errors: readonly { readonly message: string }[]): void {
    const list = process.env[UNSTARTED_VARIABLE];
    if (list === undefined || errors.length === 0) return;
    // A run that failed for any other reason has failed.
    if (files.some((file) => file.state() === "failed")) return;
    if (!errors.every(({ message }) => message.startsWith(MESSAGE))) return;
    const done = new Set(files.filter((file) => file.state() !== "queued").map(({ moduleId }) => moduleId));
    writeFileSync(list, JSON.stringify([...this.#files].filter((file) => !done.has(file))));
  }
}
