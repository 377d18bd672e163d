/**
 * CPU time of a process by thread, from /proc. The scheduler's own figure (`schedstat`) is in nanoseconds; where the kernel lacks it, the
 * clock ticks of `stat` are used, which are 10 ms each. Without /proc there are no figures.
 */
import { readdirSync, readFileSync } from "node:fs";

/** Microseconds by name of the thread; threads of the same name are added up. */
export type CpuTimes = ReadonlyMap<string, number>;

const US_PER_TICK = 10_000;

/** Names that Node.js gives its threads, as they stand in the report. */
const THREAD_NAMES: Readonly<Record<string, string>> = {
  V8Worker: "V8 helpers",
  "libuv-worker": "libuv pool",
  DelayedTaskSche: "V8 helpers",
  SignalInspector: "other",
};

/** Prefix of the values that are CPU time of one thread. */
export const THREAD_PREFIX = "thread: ";
/** The value that tells how busy other processes kept the server's core, from 0 to 1. */
export const OTHERS = "others";

export function readCpuTimes(pid: number): CpuTimes {
  const times = new Map<string, number>();
  for (const thread of listThreads(pid)) {
    const name = nameOf(pid, thread);
    times.set(name, (times.get(name) ?? 0) + readThreadUs(`/proc/${pid}/task/${thread}`));
  }
  return times;
}

export function totalUs(times: CpuTimes): number {
  return [...times.values()].reduce((sum, us) => sum + us, 0);
}

export interface MeteredServer {
  /** The core that the server is bound to, if it is. */
  readonly core: number | null;
  cpuTimes(): CpuTimes;
}

/**
 * Starts to measure. The returned function gives the CPU time per call since then, in total and by thread, and the share of the core that
 * other processes used meanwhile.
 */
export function meterCpu(server: MeteredServer): (calls: number) => Record<string, number> {
  const startedAt = performance.now();
  const before = server.cpuTimes();
  const coreBefore = readCoreUs(server.core);
  return (calls) => {
    const after = server.cpuTimes();
    if (after.size === 0) return {};
    const used = totalUs(after) - totalUs(before);
    const values: Record<string, number> = { cpu: used / calls };
    for (const [name, us] of after)
      values[`${THREAD_PREFIX}${name}`] = (us - (before.get(name) ?? 0)) / calls;
    const core = readCoreUs(server.core);
    if (core !== null && coreBefore !== null)
      values[OTHERS] = Math.max(0, core - coreBefore - used) / ((performance.now() - startedAt) * 1000);
    return values;
  };
}

/** Time that a core was busy, for whatever process, interrupts and the hypervisor's other guests included. */
function readCoreUs(core: number | null): number | null {
  const line = read("/proc/stat")
    ?.split("\n")
    .find((text) => text.startsWith(`cpu${core} `));
  if (line === undefined) return null;
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = line
    .split(" ")
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softirq + steal) * US_PER_TICK;
}

function nameOf(pid: number, thread: string): string {
  if (thread === String(pid)) return "main";
  const name = read(`/proc/${pid}/task/${thread}/comm`)?.trim() ?? "other";
  return THREAD_NAMES[name] ?? name;
}

function readThreadUs(folder: string): number {
  const nanoseconds = read(`${folder}/schedstat`)?.split(" ")[0];
  if (nanoseconds !== undefined) return Number(nanoseconds) / 1000;
  const fields = read(`${folder}/stat`)?.split(") ")[1]?.split(" ");
  return fields === undefined ? 0 : (Number(fields[11]) + Number(fields[12])) * US_PER_TICK;
}

function listThreads(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

function read(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
