/**
 * A server under a mixed load for hours. Each interval has a line of readings. At the end each figure is flat or grows, compared over the readings after the
 * warm-up: the first quarter of the run, in which caches fill, code is compiled and every entity is created.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { totalUs } from "../support/cpu-times.ts";
import { startProbe } from "../support/probe.ts";
import { startSignalbox, THIS_CHECKOUT } from "../support/signalbox.ts";
import { mixedKinds, ROOT_TOKEN, SECRET } from "./mixed-requests.ts";
import { type IntervalFigures, PacedLoad } from "./paced-load.ts";
import { readServer, type ServerReading } from "./readings.ts";
import { type Trend, trendOf } from "./trend.ts";

const WARM_UP_SHARE = 0.25;
const INTERVALS = 60;
const MAX_INTERVAL_MS = 60_000;
/** Smaller differences do not count: a garbage collection, a checkpoint, a page of the dashboard. */
const LEAST = { memoryMiB: 30, descriptors: 50, files: 50, latencyMs: 10, cpuUs: 20 };

export interface SoakReading extends ServerReading {
  readonly seconds: number;
  readonly healthzMs: number;
  /** CPU time of the process for each answered request, whatever else it did: the figure that a busy machine disturbs least. */
  readonly cpuUs: number;
  readonly loads: Readonly<Record<string, IntervalFigures>>;
}

export interface SoakResult {
  readonly readings: readonly SoakReading[];
  /** By figure; null if there were too few readings. */
  readonly trends: Readonly<Record<string, Trend | null>>;
  readonly failed: number;
}

export interface SoakOptions {
  readonly hours: number;
  /** Of the rates in `mixed-requests.ts`. */
  readonly factor: number;
  readonly signal: AbortSignal;
  onReading(reading: SoakReading): void;
}

export async function runSoak({ hours, factor, signal, onReading }: SoakOptions): Promise<SoakResult> {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-soak-"));
  const dataDir = join(folder, "data");
  mkdirSync(dataDir, { mode: 0o700 });
  const server = await startSignalbox({
    checkout: THIS_CHECKOUT,
    dataDir,
    // Fewer instances in memory than there are entities, and little history: the bounds of everything that is kept are reached.
    config: { agents: { maxActiveInstances: 500 }, tags: { historyChanges: 10_000 } },
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN, WEBHOOK_SECRET: SECRET, SIGNALBOX_LOG_LEVEL: "warn" },
  });
  const loads = mixedKinds(factor).map((kind) => ({
    name: kind.name,
    load: new PacedLoad(server.port, kind),
  }));
  const readings: SoakReading[] = [];
  const startedAt = performance.now();
  const durationMs = hours * 3_600_000;
  const intervalMs = Math.min(MAX_INTERVAL_MS, durationMs / INTERVALS);
  try {
    while (!signal.aborted && performance.now() - startedAt < durationMs) {
      const probe = startProbe(server.port);
      const usedBefore = totalUs(server.cpuTimes());
      await sleep(intervalMs, undefined, { signal }).catch(() => undefined);
      const used = totalUs(server.cpuTimes()) - usedBefore;
      const figures = Object.fromEntries(loads.map(({ name, load }) => [name, load.take()]));
      const answered = Object.values(figures).reduce((sum, one) => sum + one.answered, 0);
      const reading = {
        seconds: (performance.now() - startedAt) / 1000,
        ...readServer(server, dataDir),
        healthzMs: await probe.stop(),
        cpuUs: used / Math.max(1, answered),
        loads: figures,
      };
      readings.push(reading);
      onReading(reading);
    }
  } finally {
    for (const { load } of loads) load.stop();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
  return { readings, trends: trendsOf(readings), failed: sumOfFailures(readings) };
}

function trendsOf(readings: readonly SoakReading[]): Record<string, Trend | null> {
  const warm = readings.slice(Math.floor(readings.length * WARM_UP_SHARE));
  const kinds = Object.keys(readings[0]?.loads ?? {});
  return {
    "memory, MiB": trendOf(
      warm.map(({ memoryMiB }) => memoryMiB),
      LEAST.memoryMiB,
    ),
    descriptors: trendOf(
      warm.map(({ descriptors }) => descriptors),
      LEAST.descriptors,
    ),
    files: trendOf(
      warm.map(({ files }) => files),
      LEAST.files,
    ),
    "CPU time, µs a request": trendOf(
      warm.map(({ cpuUs }) => cpuUs),
      LEAST.cpuUs,
    ),
    ...Object.fromEntries(
      kinds.map((kind) => [
        `${kind} p99, ms`,
        trendOf(
          warm.map(({ loads }) => loads[kind]?.p99 ?? 0),
          LEAST.latencyMs,
        ),
      ]),
    ),
  };
}

function sumOfFailures(readings: readonly SoakReading[]): number {
  return readings.flatMap(({ loads }) => Object.values(loads)).reduce((sum, { failed }) => sum + failed, 0);
}
