/**
 * `npm run soak -- --hours n [--rate f]`: one server under a mixed load for hours (bench/soak). Prints a line of readings for each interval, and at the end
 * which figures are flat after the warm-up. Exits with 1 if one grows or a request failed. SIGTERM ends it early, with its summary. Readings are
 * written to bench/results/soak.json.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { runSoak, type SoakReading, type SoakResult } from "../bench/soak/run-soak.ts";
import { pinLoadGenerator } from "../bench/support/server-on-core.ts";
import { formatNumber } from "../bench/support/statistics.ts";

const RESULTS = join(import.meta.dirname, "../bench/results");

process.exitCode = await main();

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { hours: { type: "string" }, rate: { type: "string", default: "1" } },
  });
  const [hours, factor] = [Number(values.hours), Number(values.rate)];
  if (!(hours > 0) || !(factor > 0)) {
    console.error("usage: npm run soak -- --hours <n> [--rate <factor>]");
    return 2;
  }
  const stop = new AbortController();
  process.once("SIGTERM", () => stop.abort());
  pinLoadGenerator();
  const result = await runSoak({ hours, factor, signal: stop.signal, onReading: printReading });
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(join(RESULTS, "soak.json"), `${JSON.stringify({ hours, factor, ...result }, null, 2)}\n`);
  return report(result);
}

function printReading({
  seconds,
  memoryMiB,
  descriptors,
  files,
  dataMiB,
  healthzMs,
  cpuUs,
  loads,
}: SoakReading): void {
  const shares = Object.entries(loads).map(
    ([name, { answered, failed, failures, p50, p99 }]) =>
      `${name} ${answered}${failed === 0 ? "" : ` (${failed} FAILED: ${failures.join("; ")})`} ${formatNumber(p50)}/${formatNumber(p99)} ms`,
  );
  console.log(
    `${(seconds / 60).toFixed(1).padStart(7)} min  ${formatNumber(memoryMiB)} MiB  ${descriptors} descriptors  ${files} files  ` +
      `${formatNumber(dataMiB)} MiB data  healthz ${formatNumber(healthzMs)} ms  ${formatNumber(cpuUs)} µs CPU a request  ${shares.join("  ")}`,
  );
}

function report({ trends, failed }: SoakResult): number {
  console.log("\nafter the warm-up, first quarter → last quarter:");
  for (const [name, trend] of Object.entries(trends)) {
    const text =
      trend === null
        ? "too few readings"
        : `${formatNumber(trend.first)} → ${formatNumber(trend.last)}  ${trend.isFlat ? "flat" : `GROWS by ${(trend.growth * 100).toFixed(0)} %`}`;
    console.log(`  ${name.padEnd(24)} ${text}`);
  }
  console.log(`  ${failed} requests failed`);
  return failed === 0 && Object.values(trends).every((trend) => trend?.isFlat !== false) ? 0 : 1;
}
