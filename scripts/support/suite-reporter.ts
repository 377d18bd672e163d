/**
 * The runner's own report. In addition, failures are printed when they happen, and named right above the summary: often the end of a log, or its beginning,
 * is all that is kept of a run.
 */
import { relative } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { DefaultReporter, type TestCase } from "vitest/node";

/** Lines of a difference: enough to see what it was. */
const MAX_CHANGES = 12;
/** Lines of a message that is printed at once. */
const MAX_LINES = 30;

export class SuiteReporter extends DefaultReporter {
  readonly #failed: TestCase[] = [];

  override onTestCaseResult(test: TestCase): void {
    super.onTestCaseResult(test);
    if (test.result().state !== "failed") return;
    this.#failed.push(test);
    // At once: a run may be cut off before its end.
    this.log(`Failed: ${nameOf(test)}`);
    for (const { message } of test.result().errors ?? [])
      this.log(indent(message.split("\n").slice(0, MAX_LINES)));
  }

  override reportTestSummary(...args: Parameters<DefaultReporter["reportTestSummary"]>): void {
    this.#nameFailed();
    super.reportTestSummary(...args);
  }

  #nameFailed(): void {
    if (this.#failed.length === 0) return;
    this.log("\nFailed:");
    for (const test of this.#failed) {
      this.log(`  ${nameOf(test)}`);
      for (const { message, diff = "" } of test.result().errors ?? [])
        this.log(indent([message.split("\n")[0] ?? "", ...changesOf(diff)]));
    }
  }
}

function nameOf(test: TestCase): string {
  return `${relative(process.cwd(), test.module.moduleId)} > ${test.fullName}`;
}

function indent(lines: readonly string[]): string {
  return lines.map((line) => `    ${line}`).join("\n");
}

function changesOf(diff: string): string[] {
  const lines = stripVTControlCharacters(diff).split("\n");
  return lines.filter((line) => /^[-+] {2}/.test(line)).slice(0, MAX_CHANGES);
}
