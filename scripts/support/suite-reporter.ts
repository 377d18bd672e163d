/**
 * The runner's own report, with names right above its summary: often the end of a log is all that is kept of a run, and one failure can fill it.
 */
import { relative } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { DefaultReporter, type TestCase } from "vitest/node";

/** Lines of a difference: enough to see what it was. */
const MAX_CHANGES = 12;

export class SuiteReporter extends DefaultReporter {
  readonly #failed: TestCase[] = [];

  override onTestCaseResult(test: TestCase): void {
    super.onTestCaseResult(test);
    if (test.result().state === "failed") this.#failed.push(test);
  }

  override reportTestSummary(...args: Parameters<DefaultReporter["reportTestSummary"]>): void {
    this.#nameFailed();
    super.reportTestSummary(...args);
  }

  #nameFailed(): void {
    if (this.#failed.length === 0) return;
    this.log("\nFailed:");
    for (const test of this.#failed) {
      this.log(`  ${relative(process.cwd(), test.module.moduleId)} > ${test.fullName}`);
      for (const { message, diff = "" } of test.result().errors ?? [])
        for (const line of [message.split("\n")[0] ?? "", ...changesOf(diff)]) this.log(`    ${line}`);
    }
  }
}

function changesOf(diff: string): string[] {
  const lines = stripVTControlCharacters(diff).split("\n");
  return lines.filter((line) => /^[-+] {2}/.test(line)).slice(0, MAX_CHANGES);
}
