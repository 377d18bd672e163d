/**
 * The runner's own report, with names right above its summary: often the end of a log is all that is kept of a run, and one failure can fill it.
 *
 * A test that passed only at its second try is named with the error of the first: the run passes, but each of them is a defect to find.
 */
import { relative } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { DefaultReporter, type TestCase } from "vitest/node";

/** Lines of a difference: enough to see what it was. */
const MAX_CHANGES = 12;

export class SuiteReporter extends DefaultReporter {
  readonly #flaky: TestCase[] = [];
  readonly #failed: TestCase[] = [];

  override onTestCaseResult(test: TestCase): void {
    super.onTestCaseResult(test);
    if (test.result().state === "failed") this.#failed.push(test);
    else if (test.diagnostic()?.flaky === true) this.#flaky.push(test);
  }

  override reportTestSummary(...args: Parameters<DefaultReporter["reportTestSummary"]>): void {
    this.#list("Passed only at the second try:", this.#flaky);
    this.#list("Failed:", this.#failed);
    super.reportTestSummary(...args);
  }

  #list(title: string, tests: readonly TestCase[]): void {
    if (tests.length === 0) return;
    this.log(`\n${title}`);
    for (const test of tests) {
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
