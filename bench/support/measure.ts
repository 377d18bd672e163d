/** Starts every contender once and measures them in interleaved rounds, so that a disturbance of the machine affects all of them alike. */
import { setTimeout as sleep } from "node:timers/promises";
import { totalUs } from "./cpu-times.ts";
import type { Measurement, RunningContender, Workload } from "./workload.ts";

const REST_MS = 250;
const MAX_RESTS = 40;

export async function measureAll({ contenders, scenarios, rounds }: Workload): Promise<Measurement[]> {
  const running: { name: string; contender: RunningContender }[] = [];
  const measurements: Measurement[] = [];
  try {
    for (const { name, start } of contenders) {
      const contender = await start();
      if (contender !== null) running.push({ name, contender });
    }
    for (let round = 0; round < rounds; round++) {
      for (const scenario of scenarios) {
        // Each round begins with another contender: none always runs on caches that the same predecessor has warmed.
        for (let i = 0; i < running.length; i++) {
          const turn = running[(i + round) % running.length];
          await untilIdle(running.map(({ contender }) => contender));
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

/**
 * Waits, ten seconds at most, until no server uses the processor: work that a measurement leaves behind (checkpoints, instances that go to
 * sleep) must not be charged to the next measurement.
 */
async function untilIdle(contenders: readonly RunningContender[]): Promise<void> {
  const usedUs = () =>
    contenders.reduce((sum, { cpuTimes }) => sum + (cpuTimes === undefined ? 0 : totalUs(cpuTimes())), 0);
  for (let rests = 0; rests < MAX_RESTS; rests++) {
    const before = usedUs();
    await sleep(REST_MS);
    if (usedUs() - before < (REST_MS * 1000) / 10) return;
  }
}
