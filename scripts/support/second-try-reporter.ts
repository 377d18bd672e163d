/** Names the tests that passed only at their second try, with the error of the first: the run passes, but each of them is a defect to find. */
import { relative } from "node:path";
import type { Reporter, TestCase } from "vitest/node";

export class SecondTryReporter implements Reporter {
  readonly #flaky: TestCase[] = [];

  onTestCaseResult(test: TestCase): void {
    if (test.diagnostic()?.flaky === true) this.#flaky.push(test);
  }

  onTestRunEnd(): void {
    if (this.#flaky.length === 0) return;
    console.log("\nPassed only at the second try:");
    for (const test of this.#flaky) {
      console.log(`  ${relative(process.cwd(), test.module.moduleId)} > ${test.fullName}`);
      for (const error of test.result().errors ?? [])
        console.log(`    ${error.message.split("\n")[0] ?? ""}`);
    }
  }
}
