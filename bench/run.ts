/**
 * `npm run bench -- <name>`: one workload, every contender started once and measured in interleaved rounds, so that a noisy machine
 * hits all of them alike. Prints medians and ratios and writes every sample to `bench/results/<name>.json`.
 */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
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
const name = process.argv[2];
if (name === undefined || !names.includes(name)) {
  console.error(`usage: npm run bench -- <${names.join("|")}>`);
  process.exit(2);
}
const { workload } = (await import(join(WORKLOADS, `${name}.ts`))) as { workload: Workload };
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
