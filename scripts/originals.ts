/**
 * `npm run originals -- <path> …`: how much of what others wrote runs here. Each path is in a checkout whose packages are installed:
 *
 * - a folder with a wrangler file and test files (`*.test.ts`): a suite, whose tests run inside of a worker program (`FILTER=expression`: only files whose path it matches). Files of a suite
 *   share a process: run a failing one alone before you believe it.
 * - a wrangler file, or a folder with one: a program, which is started and asked in the protocols of its packages.
 * - a folder without one: the programs of all wrangler files below it.
 *
 * `NODES=3`: on the nodes of a cluster, on PostgreSQL. Prints a table, and everything that failed, with its reason. Nothing is fetched; to keep programs from the network, run it
 * in a network namespace.
 */
import { stat } from "node:fs/promises";
import { relative, resolve } from "node:path";
import { runProgram } from "./originals/program.ts";
import { runSuite } from "./originals/suite.ts";
import { filesBelow, findWrangler, isWrangler } from "./originals/wrangler-files.ts";

const OUTCOMES = ["passed", "failed", "not portable", "skipped"] as const;
const FILTER = new RegExp(process.env["FILTER"] ?? "");
const rows: string[] = [];

const paths = process.argv.slice(2);
if (paths.length === 0) {
  console.error("usage: npm run originals -- <folder or wrangler file> …");
  process.exitCode = 2;
}
for (const path of paths.map((one) => resolve(one))) await runPath(path);
if (rows.length > 0) console.log(`\n${rows.join("\n")}`);

async function runPath(path: string): Promise<void> {
  if ((await stat(path)).isFile()) return reportProgram(path, process.cwd());
  const wrangler = await findWrangler(path);
  const files = await filesBelow(path);
  if (wrangler === null) {
    for (const file of files.filter((one) => isWrangler(one) && FILTER.test(one)))
      await reportProgram(file, path);
    return;
  }
  const tests = files.filter((file) => /\.test\.tsx?$/.test(file) && FILTER.test(file));
  if (tests.length > 0) await reportSuite(path, tests);
  else await reportProgram(wrangler, process.cwd());
}

/** A row: name, seconds of its start, what answered. */
async function reportProgram(path: string, above: string): Promise<void> {
  const name = relative(above, path);
  try {
    const { seconds, answers, failures } = await runProgram(path);
    rows.push(`| ${name} | ${seconds === null ? "no program" : `${seconds} s`} | ${answers.join("; ")} |`);
    for (const failure of failures) console.log(`${name}: ${failure}`);
  } catch (error) {
    rows.push(`| ${name} | does not start | |`);
    console.log(`${name}: ${reasonOf(error)}`);
  }
  console.error(rows.at(-1));
}

/** A row: name, files, tests by outcome. */
async function reportSuite(folder: string, files: readonly string[]): Promise<void> {
  const name = relative(process.cwd(), folder);
  try {
    const outcomes = await runSuite(folder, files);
    const counts = OUTCOMES.map(
      (kind) => `${outcomes.filter(({ outcome }) => outcome === kind).length} ${kind}`,
    );
    rows.push(`| ${name} | ${files.length} files | ${counts.join(" | ")} |`);
    for (const { name: test, outcome, reason } of outcomes)
      if (outcome === "failed") console.log(`${name}: ${test}: ${reason ?? ""}`);
  } catch (error) {
    rows.push(`| ${name} | does not start | |`);
    console.log(`${name}: ${reasonOf(error)}`);
  }
}

/** The last line of what a server logs says why it ended. */
function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.trim().split("\n").at(-1) ?? text;
}
