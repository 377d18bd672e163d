/** Checks whether the running server could use more cores: its event loop is busy, and there are others. */
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { findRunningServer } from "../../database/sqlite/data-folder.ts";
import { type Finding, ok, type Patient, warn } from "./finding.ts";

/** How long the server is watched. */
const WATCH_MS = 1000;
/** Of one core. Above it, calls wait for each other. */
const BUSY_SHARE = 0.9;
/** `USER_HZ` of Linux, in which it counts CPU time for programs, whatever the kernel's own clock is. */
const TICKS_PER_SECOND = 100;

/** The server on the data folder, if its system tells the CPU time of a thread (Linux). */
export async function checkCores({ dataDir, config }: Patient): Promise<Finding[]> {
  const server = findRunningServer(dataDir);
  const cores = availableParallelism();
  // One process is what SQLite needs, and what a single core can use.
  if (server === null || config?.databaseUrl === undefined || cores === 1) return [];
  const share = await readShare(server.pid);
  return share === null ? [] : judgeCores({ share, cores, isCluster: config.cluster !== null });
}

export interface CoreFacts {
  /** CPU time of the main thread in a second of time. Of a supervisor, which does not serve, it is small. */
  readonly share: number;
  readonly cores: number;
  readonly isCluster: boolean;
}

export function judgeCores({ share, cores, isCluster }: CoreFacts): Finding[] {
  const text = `the event loop of the server uses ${Math.round(share * 100)} % of a core`;
  if (share < BUSY_SHARE) return [ok("cores", text)];
  return [
    warn(
      "cores",
      `${text}, and the machine has ${cores}`,
      isCluster
        ? "start the server with --processes auto: one process per core"
        : "set SIGNALBOX_CLUSTER_SECRET and the other secrets of a cluster, and start the server with --processes auto: one process per core",
    ),
  ];
}

/** Null if the system does not tell. */
async function readShare(pid: number): Promise<number | null> {
  const [before, startedAt] = [readTicks(pid), performance.now()];
  if (before === null) return null;
  await sleep(WATCH_MS);
  const after = readTicks(pid);
  if (after === null) return null;
  return ((after - before) / TICKS_PER_SECOND / (performance.now() - startedAt)) * 1000;
}

/** User and system time of the main thread (proc(5): fields 14 and 15, after the name in parentheses). */
function readTicks(pid: number): number | null {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return Number(fields[11]) + Number(fields[12]);
  } catch {
    return null;
  }
}
