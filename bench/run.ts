/**
 * `npm run bench -- <name>`: one workload, every contender started once and measured in interleaved rounds, so that a noisy machine
 * hits all of them alike. Prints medians and ratios and writes every sample to `bench/results/<name>.json`.
 *
 * `npm run bench -- <name> --before <folder>` compares this checkout with another one of the repository, such as the commit before a change,
 * in place of the rivals. The other one needs its own `npm ci`.
 */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { basename, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type Measurement, renderReport } from "./support/report.ts";
import { pinLoadGenerator } from "./support/server-on-core.ts";
import type { RunningContender, Workload } from "./support/workload.ts";

const WORKLOADS = join(import.meta.dirname, "workloads");
const RESULTS = join(import.meta.dirname, "results");
const REST_MS = 250;
const MAX_RESTS = 40;

const names = readdirSync(WORKLOADS)
  .filter((file) => file.endsWith(".ts"))
  .map((file) => basename(file, ".ts"));
const { positionals, values } = parseArgs({
  options: { before: { type: "string" }, help: { type: "boolean" } },
  allowPositionals: true,
});
const [name] = positionals;
if (name === undefined || !names.includes(name)) {
  console.error(`usage: npm run bench -- <${names.join("|")}> [--before <another checkout>]`);
  process.exit(2);
}
const { workload: published } = (await import(join(WORKLOADS, `${name}.ts`))) as { workload: Workload };
const workload = values.before === undefined ? published : against(published, resolve(values.before));
pinLoadGenerator();
const measurements = await measureAll(workload);
console.log(renderReport(workload, measurements));
mkdirSync(RESULTS, { recursive: true });
const machine = {
  cpu: cpus()[0]?.model,
  cores: cpus().length,
  node: process.version,
  platform: process.platform,
  arch: process.arch,
};
const result = { name, at: new Date().toISOString(), machine, measurements };
writeFileSync(join(RESULTS, `${name}.json`), `${JSON.stringify(result, null, 2)}\n`);

/** Goals are stated against rivals, so they do not apply to a comparison of two versions. */
function against(published: Workload, checkout: string): Workload {
  const { name, summary, scenarios, rounds, contenders, oursAt } = published;
  const [ours] = contenders;
  const before = oursAt?.(checkout);
  if (ours === undefined || before === undefined)
    throw new Error(`${name} cannot be run on another checkout`);
  return { name, summary, scenarios, rounds, contenders: [ours, { ...before, name: "before" }] };
}

/**
 * Waits, ten seconds at most, until no server uses the processor: what a measurement leaves to be done (instances that go to sleep, logs that are
 * tidied up) must not be charged to the next one, nor to the other side.
 */
async function untilAtRest(contenders: readonly RunningContender[]): Promise<void> {
  const servers = contenders.filter((contender) => contender.cpuMs !== undefined);
  const used = () => servers.reduce((sum, server) => sum + (server.cpuMs?.() ?? 0), 0);
  for (let rests = 0; rests < MAX_RESTS && servers.length > 0; rests++) {
    const before = used();
    await sleep(REST_MS);
    if (used() - before < REST_MS / 10) return;
  }
}

async function measureAll({ contenders, scenarios, rounds }: Workload): Promise<Measurement[]> {
  const running: { name: string; contender: RunningContender }[] = [];
  const measurements: Measurement[] = [];
  try {
    for (const contender of contenders)
      running.push({ name: contender.name, contender: await contender.start() });
    for (let round = 0; round < rounds; round++) {
      for (const scenario of scenarios) {
        // Each round begins with another contender: none always runs on the caches its predecessor warmed.
        for (let i = 0; i < running.length; i++) {
          const turn = running[(i + round) % running.length];
          await untilAtRest(running.map(({ contender }) => contender));
          const values = await turn?.contender.measure(scenario.name, round);
          if (turn !== undefined && values != null)
            measurements.push({ contender: turn.name, scenario: scenario.name, round, values });
        }
      }
      console.error(`round ${round + 1} of ${rounds} done`);
    }
  } finally {
    for (const { contender } of running) await contender.stop();
  }
  return measurements;
}
