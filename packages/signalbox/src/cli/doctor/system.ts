/** Checks limits of the system: Node.js, open files, memory, queues of the kernel, the clock. Facts that a system does not tell are left out. */
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { constrainedMemory } from "node:process";
import { totalmem } from "node:os";
import { promisify } from "node:util";
import { fail, type Finding, ok, type Patient, warn } from "./finding.ts";

const MIN_NODE = 24;
const DEFAULT_CONNECTIONS = 10_000;
/** Databases of instances, logs and calls to providers. */
const OTHER_FILES = 2000;
const MEGABYTE = 1024 ** 2;
const MIN_MEMORY = 256 * MEGABYTE;
const LOW_MEMORY = 512 * MEGABYTE;
const MIN_BACKLOG = 512;
const MIN_WATCHES = 8192;
const FIRST_YEAR = 2026;
const TIMEDATECTL_MS = 1000;

export function checkSystem({ config }: Patient): Finding[] {
  return [
    ...checkNode(),
    ...checkFiles(config?.file.listener.maxConnections ?? DEFAULT_CONNECTIONS),
    ...checkMemory(),
    ...checkKernel(),
  ];
}

function checkNode(): Finding[] {
  const major = Number(process.versions.node.split(".")[0]);
  return [
    major >= MIN_NODE
      ? ok("node", `Node.js ${process.version}`)
      : fail("node", `Node.js ${process.version} is too old`, `install Node.js ${MIN_NODE} or newer`),
  ];
}

function checkFiles(connections: number): Finding[] {
  const limit = openFileLimit(readText("/proc/self/limits"));
  if (limit === null) return [];
  const needed = connections + OTHER_FILES;
  return [
    limit >= needed
      ? ok("open files", `at most ${limit === Infinity ? "unlimited" : limit}`)
      : warn(
          "open files",
          `at most ${limit}; listener.maxConnections is ${connections}, and databases need files, too`,
          `raise it (ulimit -n ${needed}, LimitNOFILE=${needed} in a unit of systemd), or lower listener.maxConnections`,
        ),
  ];
}

export function openFileLimit(limits: string | null): number | null {
  const soft = /^Max open files\s+(\S+)/m.exec(limits ?? "")?.[1];
  if (soft === undefined) return null;
  return soft === "unlimited" ? Infinity : Number(soft);
}

/** The limit of the container, if it is below the memory of the machine. */
function checkMemory(): Finding[] {
  const limit = constrainedMemory();
  const isLimited = limit > 0 && limit < totalmem();
  const bytes = isLimited ? limit : totalmem();
  const text = `${Math.round(bytes / MEGABYTE)} MB${isLimited ? " (limit of the container)" : ""}`;
  const remedy = "give it more memory, or lower gateway.maxBufferedBytes and gateway.cacheBytes";
  if (bytes < MIN_MEMORY) return [fail("memory", text, remedy)];
  return [bytes < LOW_MEMORY ? warn("memory", text, remedy) : ok("memory", text)];
}

function checkKernel(): Finding[] {
  const backlog = readNumber("/proc/sys/net/core/somaxconn");
  const watches = readNumber("/proc/sys/fs/inotify/max_user_watches");
  const findings: Finding[] = [];
  if (backlog !== null && backlog < MIN_BACKLOG)
    findings.push(
      warn(
        "kernel",
        `net.core.somaxconn is ${backlog}: connections are dropped under load`,
        "sysctl -w net.core.somaxconn=4096",
      ),
    );
  if (watches !== null && watches < MIN_WATCHES)
    findings.push(
      warn(
        "kernel",
        `fs.inotify.max_user_watches is ${watches}: \`signalbox dev\` may miss changes in large projects`,
        "sysctl -w fs.inotify.max_user_watches=524288",
      ),
    );
  return findings.length > 0 || backlog === null
    ? findings
    : [ok("kernel", `somaxconn ${backlog}, inotify watches ${watches ?? "-"}`)];
}

/** Tokens, budgets and webhook signatures depend on the time. `ranMs` and `passedMs`: how far both clocks moved while the checks ran. */
export async function checkClock(ranMs: number, passedMs: number): Promise<Finding[]> {
  const jump = Math.round(passedMs - ranMs);
  const now = new Date();
  if (now.getUTCFullYear() < FIRST_YEAR)
    return [fail("clock", `the clock says ${now.toISOString()}`, "set the clock, and synchronize it (NTP)")];
  if (Math.abs(jump) > 1000)
    return [
      warn(
        "clock",
        `the clock was set by ${jump} ms while this command ran`,
        "let NTP slew the clock instead of setting it",
      ),
    ];
  const isSynchronized = await readSynchronized();
  if (isSynchronized === false)
    return [
      warn("clock", `${now.toISOString()}, not synchronized`, "timedatectl set-ntp true, or install chrony"),
    ];
  return [ok("clock", `${now.toISOString()}${isSynchronized === null ? "" : ", synchronized"}`)];
}

/** Null if the system does not tell. */
async function readSynchronized(): Promise<boolean | null> {
  if (existsSync("/run/systemd/timesync/synchronized")) return true;
  try {
    const args = ["show", "--property=NTPSynchronized", "--value"];
    const { stdout } = await promisify(execFile)("timedatectl", args, { timeout: TIMEDATECTL_MS });
    return stdout.trim() === "yes" ? true : stdout.trim() === "no" ? false : null;
  } catch {
    return null;
  }
}

function readNumber(path: string): number | null {
  const value = Number(readText(path) ?? Number.NaN);
  return Number.isFinite(value) ? value : null;
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
