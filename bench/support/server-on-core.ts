/** Starts a server process for a benchmark, on a core of its own where the machine allows it (Linux with taskset). */
import { type ChildProcessByStdio, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import type { Readable } from "node:stream";
import { type MeteredServer, readCpuTimes } from "./cpu-times.ts";

const SERVER_CORE = 0;
const LOAD_CORE = 1;
const canPin = availableParallelism() > 1 && spawnSync("taskset", ["--version"]).status === 0;

export interface ServerOnCore extends MeteredServer {
  readonly pid: number;
  /** First line the server wrote to standard output. */
  readonly firstLine: string;
  residentBytes(): number | null;
  stop(): Promise<void>;
}

/** Moves this process, and with it the load generator, to the other core. */
export function pinLoadGenerator(): void {
  if (canPin) spawnSync("taskset", ["-a", "-cp", String(LOAD_CORE), String(process.pid)]);
}

/** Gives this process all cores again, for a workload whose client is a browser: on one core, it would be the slow part. */
export function unpinLoadGenerator(): void {
  const all = `0-${availableParallelism() - 1}`;
  if (canPin) spawnSync("taskset", ["-a", "-cp", all, String(process.pid)]);
}

export interface StartOptions {
  readonly env?: Record<string, string>;
  readonly cwd?: string;
  readonly waitForLine?: boolean;
}

export function startOnCore(command: readonly string[], options: StartOptions = {}): Promise<ServerOnCore> {
  return start(command, SERVER_CORE, options);
}

/** For a provider behind the server under test, which must not use that server's core. */
export function startOnLoadCore(
  command: readonly string[],
  options: StartOptions = {},
): Promise<ServerOnCore> {
  return start(command, LOAD_CORE, options);
}

async function start(command: readonly string[], core: number, options: StartOptions): Promise<ServerOnCore> {
  const [program = "", ...args] = canPin ? ["taskset", "-c", String(core), ...command] : command;
  const child = spawn(program, args, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  const firstLine = options.waitForLine === false ? "" : await readLine(child);
  const pid = child.pid ?? 0;
  return {
    pid,
    firstLine,
    core: canPin ? core : null,
    cpuTimes: () => readCpuTimes(pid),
    residentBytes: () => readResidentBytes(pid),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exit = once(child, "exit");
      child.kill("SIGTERM");
      await exit;
    },
  };
}

function readLine(child: ChildProcessByStdio<null, Readable, null>): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      const end = text.indexOf("\n");
      if (end !== -1) resolve(text.slice(0, end));
    });
    child.once("exit", (code) => reject(new Error(`the server exited with ${code} before it was ready`)));
  });
}

function readResidentBytes(pid: number): number | null {
  try {
    const kilobytes = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return kilobytes === undefined ? null : Number(kilobytes) * 1024;
  } catch {
    return null;
  }
}
