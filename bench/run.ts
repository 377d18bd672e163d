/** `npm run bench`: see `HELP`. Every sample is written to `bench/results/<name>.json`, those of a comparison to `<name>-before.json`. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { basename, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { AFTER, BEFORE, type Comparison, renderComparison } from "./support/comparison.ts";
import { measureAll } from "./support/measure.ts";
import { usedLoadGenerator } from "./support/native-programs.ts";
import { renderReport } from "./support/report.ts";
import { pinLoadGenerator } from "./support/server-on-core.ts";
import { THIS_CHECKOUT } from "./support/signalbox.ts";
import type { Contender, Workload } from "./support/workload.ts";

const WORKLOADS = join(import.meta.dirname, "workloads");
const RESULTS = join(import.meta.dirname, "results");

const names = readdirSync(WORKLOADS)
  .filter((file) => file.endsWith(".ts"))
  .map((file) => basename(file, ".ts"));

const HELP = `usage: npm run bench -- <workload>... [--before <folder>] [--quick]

workloads: ${names.join(", ")}, or all

  --before <folder>  measure this checkout alternately with another one, which needs its own "npm ci", in place of the rivals,
                     and print one table: before, after, ratio, spread of the rounds
  --quick            many short rounds: "all --quick --before <folder>" is meant to take about 12 minutes on an idle machine
`;

const { positionals, values } = parseArgs({
  options: { before: { type: "string" }, quick: { type: "boolean" }, help: { type: "boolean" } },
  allowPositionals: true,
});
const chosen = positionals.includes("all") ? names : positionals;
if (values.help === true) {
  console.log(HELP);
} else if (chosen.length === 0 || chosen.some((name) => !names.includes(name))) {
  console.error(HELP);
  process.exitCode = 2;
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
  const head = { name, at: new Date().toISOString(), machine, loadGenerator: usedLoadGenerator() };
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(resultFile(name), `${JSON.stringify({ ...head, scenarios, measurements }, null, 2)}\n`);
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
