/**
 * The runner's own report, with additions:
 *
 * - Progress where no terminal shows it: a line every few seconds names the files that run.
 * - A failure is printed when it happens: a run may be cut off before its end.
 * - The files that took longest, and failures, are named right above the summary: often the end of a log is all that is kept of it.
 */
import { relative } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { DefaultReporter, type TestCase, type TestModule, type TestSpecification } from "vitest/node";

const PROGRESS_INTERVAL_MS = 5000;
/** Lines of a difference: enough to see what it was. */
const MAX_CHANGES = 12;
/** Lines of a message that is printed at once. */
const MAX_LINES = 30;
const LONGEST_SHOWN = 20;

export class SuiteReporter extends DefaultReporter {
  readonly #failed: TestCase[] = [];
  readonly #running = new Map<TestModule, number>();
  readonly #durations: { readonly file: string; readonly seconds: number }[] = [];
  #files = 0;
  #filesDone = 0;
  #filesFailed = 0;
  #testsDone = 0;
  #progress: NodeJS.Timeout | undefined;

  override onTestRunStart(files: readonly TestSpecification[]): void {
    super.onTestRunStart(files);
    this.#files = files.length;
    if (this.isTTY) return;
    this.#printProgress();
    this.#progress = setInterval(() => this.#printProgress(), PROGRESS_INTERVAL_MS);
  }

  override onTestRunEnd(...args: Parameters<DefaultReporter["onTestRunEnd"]>): void {
    clearInterval(this.#progress);
    super.onTestRunEnd(...args);
  }

  onTestModuleStart(module: TestModule): void {
    this.#running.set(module, performance.now());
  }

  override onTestModuleEnd(module: TestModule): void {
    const startedAt = this.#running.get(module) ?? performance.now();
    this.#durations.push({ file: fileOf(module), seconds: (performance.now() - startedAt) / 1000 });
    this.#running.delete(module);
    this.#filesDone += 1;
    if (module.state() === "failed") this.#filesFailed += 1;
    super.onTestModuleEnd(module);
  }

  /** The lines of progress replace those of files that passed. */
  protected override printTestModule(module: TestModule): void {
    if (this.isTTY || this.#files === 1 || module.state() === "failed") super.printTestModule(module);
  }

  override onTestCaseResult(test: TestCase): void {
    super.onTestCaseResult(test);
    this.#testsDone += 1;
    if (test.result().state !== "failed") return;
    this.#failed.push(test);
    this.log(`Failed: ${nameOf(test)}`);
    for (const { message } of test.result().errors ?? [])
      this.log(indent(message.split("\n").slice(0, MAX_LINES)));
  }

  override reportTestSummary(...args: Parameters<DefaultReporter["reportTestSummary"]>): void {
    this.#nameLongest();
    this.#nameFailed();
    super.reportTestSummary(...args);
  }

  #printProgress(): void {
    const elapsed = new Date(performance.now() - this.start).toISOString().slice(11, 19);
    const running = [...this.#running.keys()].map(fileOf);
    this.log(
      `${elapsed}  ${this.#filesDone} of ${this.#files} files, ${this.#testsDone} tests, ${this.#filesFailed} files failed; running: ${running.join(", ") || "none yet"}`,
    );
  }

  #nameLongest(): void {
    if (this.isTTY || this.#files < LONGEST_SHOWN) return;
    const longest = this.#durations.sort((a, b) => b.seconds - a.seconds).slice(0, LONGEST_SHOWN);
    this.log(
      `\nLongest: ${longest.map(({ file, seconds }) => `${file} ${seconds.toFixed(0)} s`).join(", ")}`,
    );
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
function fileOf({ moduleId }: TestModule): string {
  return relative(process.cwd(), moduleId);
}

function nameOf(test: TestCase): string {
  return `${fileOf(test.module)} > ${test.fullName}`;
}

function indent(lines: readonly string[]): string {
  return lines.map((line) => `    ${line}`).join("\n");
}

function changesOf(diff: string): string[] {
  const lines = stripVTControlCharacters(diff).split("\n");
  return lines.filter((line) => /^[-+] {2}/.test(line)).slice(0, MAX_CHANGES);
}
