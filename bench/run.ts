/**
 * `npm run bench`: see `HELP`. Every sample is written to `bench/results/<name>.json`, those of a comparison to `<name>-before.json`. `--page` writes the
 * medians of these files into docs/benchmarks.md.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { basename, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { AFTER, BEFORE, type Comparison, renderComparison } from "./support/comparison.ts";
import { measureAll } from "./support/measure.ts";
import { usedLoadGenerator } from "./support/native-programs.ts";
import { type Result, writeResult } from "./support/page.ts";
import { renderReport } from "./support/report.ts";
import { pinLoadGenerator } from "./support/server-on-core.ts";
import { THIS_CHECKOUT } from "./support/signalbox.ts";
import type { Contender, Workload } from "./support/workload.ts";

const WORKLOADS = join(import.meta.dirname, "workloads");
const RESULTS = join(import.meta.dirname, "results");
const PAGE = join(import.meta.dirname, "../docs/benchmarks.md");

const names = readdirSync(WORKLOADS)
  .filter((file) => file.endsWith(".ts"))
  .map((file) => basename(file, ".ts"));

const HELP = `usage: npm run bench -- <workload>... [--before <folder>] [--quick] [--page]

workloads: ${names.join(", ")}, or all

  --before <folder>  measure this checkout alternately with another one, which needs its own "npm ci", in place of the rivals,
                     and print one table: before, after, ratio, spread of the rounds
  --page             measure nothing: write the last results of the workloads into docs/benchmarks.md
  --quick            many short rounds: "all --quick --before <folder>" is meant to take about 12 minutes on an idle machine
`;

const { positionals, values } = parseArgs({
  options: {
    before: { type: "string" },
    quick: { type: "boolean" },
    page: { type: "boolean" },
    help: { type: "boolean" },
  },
  allowPositionals: true,
});
const chosen = positionals.includes("all") ? names : positionals;
if (values.help === true) {
  console.log(HELP);
} else if (chosen.length === 0 || chosen.some((name) => !names.includes(name))) {
  console.error(HELP);
  process.exitCode = 2;
} else if (values.page === true) {
  await writePage(chosen);
} else if (chosen.length === 1) {
  await runOne(chosen[0] ?? "");
} else {
  runEach(chosen);
}

async function runOne(name: string): Promise<void> {
  const { workload: published } = await importWorkload(join(WORKLOADS, `${name}.ts`));
  const before = values.before === undefined ? null : resolve(values.before);
  const workload = before === null ? published : await compared(published, before);
  pinLoadGenerator();
  const measurements = await measureAll(workload);
  const { scenarios } = workload;
  console.log(renderReport(workload, measurements));
  if (before !== null) console.log(renderComparison([{ name, scenarios, measurements }]));
  const [cpu] = cpus();
  const machine = { cpu: cpu?.model, cores: cpus().length, node: process.version, arch: process.arch };
  const head = {
    name,
    at: new Date().toISOString(),
    commit: commitOf(THIS_CHECKOUT),
    isQuick: values.quick === true,
    machine,
    loadGenerator: usedLoadGenerator(),
  };
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(resultFile(name), `${JSON.stringify({ ...head, scenarios, measurements }, null, 2)}\n`);
}

/** Workloads without results keep what the page says about them. */
async function writePage(chosen: readonly string[]): Promise<void> {
  for (const name of chosen) {
    const file = resultFile(name);
    if (!existsSync(file)) {
      console.error(`${name}: no results; measure with "npm run bench -- ${name}"`);
      continue;
    }
    const { workload } = await importWorkload(join(WORKLOADS, `${name}.ts`));
    const result = JSON.parse(readFileSync(file, "utf8")) as Result;
    writeFileSync(PAGE, writeResult(readFileSync(PAGE, "utf8"), workload, result));
    console.log(`${name}: written`);
  }
  execFileSync("oxfmt", [PAGE]);
}

/** A process for each workload, so that none runs in the heap that another has left behind, and a failure ends only one of them. */
function runEach(chosen: readonly string[]): void {
  const flags = process.argv.slice(2).filter((argument) => !positionals.includes(argument));
  const failed = chosen.filter((name) => {
    rmSync(resultFile(name), { force: true });
    const { status } = spawnSync(process.execPath, [import.meta.filename, name, ...flags], {
      stdio: "inherit",
    });
    return status !== 0;
  });
  if (values.before !== undefined) {
    const done = chosen.map(resultFile).filter((file) => existsSync(file));
    console.log(renderComparison(done.map((file) => JSON.parse(readFileSync(file, "utf8")) as Comparison)));
  }
  if (failed.length > 0) {
    console.error(`failed: ${failed.join(", ")}`);
    process.exitCode = 1;
  }
}

function resultFile(name: string): string {
  return join(RESULTS, `${name}${values.before === undefined ? "" : "-before"}.json`);
}

function commitOf(checkout: string): string {
  const git = (...args: readonly string[]) => spawnSync("git", args, { cwd: checkout, encoding: "utf8" });
  const { status, stdout } = git("rev-parse", "--short=8", "HEAD");
  // The measurements of a copy without its history are worth something, too.
  if (status !== 0) return "unknown";
  const isChanged = git("status", "--porcelain", "--", "packages", "bench").stdout !== "";
  return stdout.trim() + (isChanged ? " with changes" : "");
}

/** Goals are stated against rivals, so they do not apply to a comparison of two versions. */
async function compared(published: Workload, checkout: string): Promise<Workload> {
  const { name, summary, scenarios, rounds, contenders, oursAt } = published;
  const after = oursAt?.(THIS_CHECKOUT) ?? contenders[0];
  const before = oursAt?.(checkout) ?? (await ownContender(name, checkout));
  if (after === undefined || before === undefined)
    throw new Error(`${name} cannot be measured in ${checkout}`);
  const renamed = [
    { ...after, name: AFTER },
    { ...before, name: BEFORE },
  ];
  return { name, summary, scenarios, rounds, contenders: renamed };
}

async function ownContender(name: string, checkout: string): Promise<Contender | undefined> {
  const { workload } = await importWorkload(join(checkout, "bench/workloads", `${name}.ts`));
  return workload.contenders[0];
}

async function importWorkload(path: string): Promise<{ workload: Workload }> {
  return (await import(path)) as { workload: Workload };
}
