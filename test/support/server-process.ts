/** The command line as a real child process, for tests about starting, stopping and kills. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";

/** Processes left by a failed test are killed when the test process exits. */
const running = new Set<ChildProcessByStdio<null, Readable, Readable>>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** The restart of `serve` with settings for memory takes 0.2 s of CPU time. An empty variable in `env` switches it on. */
const NO_REEXEC = { SIGNALBOX_NO_REEXEC: "1" };

/** Unless the test has a configuration of its own. */
const PATIENT = ["--config", join(import.meta.dirname, "../fixtures/patient.config.ts")];

export const CLI = join(import.meta.dirname, "../../packages/signalbox/bin/signalbox.js");

export interface ServerProcess {
  readonly url: string;
  readonly pid: number;
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  /** Everything written to standard error so far. */
  stderr(): string;
  /** Sends the signal and resolves with the exit code (null after a kill). */
  end(signal: NodeJS.Signals): Promise<number | null>;
  /** Kills the process if it is still running. */
  kill(): Promise<void>;
}

export interface CliOptions {
  readonly env?: Record<string, string>;
  readonly cwd?: string;
  /** A command that runs the server, for example in another namespace. */
  readonly through?: readonly string[];
}

export function spawnCli(
  args: readonly string[],
  options: CliOptions = {},
): ChildProcessByStdio<null, Readable, Readable> {
  const [program = process.execPath, ...rest] = [...(options.through ?? []), process.execPath, CLI, ...args];
  const child = spawn(program, rest, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...NO_REEXEC, ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  return child;
}

/** Starts `signalbox serve --json` on a free port and waits for its first line. */
export async function startServerProcess(
  args: readonly string[],
  options: CliOptions = {},
): Promise<ServerProcess> {
  const file = hasOwnFile(args, options.cwd) ? [] : PATIENT;
  const child = spawnCli(["serve", "--json", "--port", "0", ...file, ...args], options);
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const line = await firstLine(child, () => stderr);
  const { url, pid } = JSON.parse(line) as { url: string; pid: number };
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  const end: ServerProcess["end"] = async (signal) => {
    if (hasEnded()) throw new Error(`the server had ended by itself with ${child.exitCode}: ${stderr}`);
    const exit = once(child, "exit");
    child.kill(signal);
    const [code] = (await exit) as [number | null];
    return code;
  };
  return {
    url,
    pid,
    child,
    stderr: () => stderr,
    end,
    async kill() {
      if (!hasEnded()) await end("SIGKILL");
    },
  };
}

function hasOwnFile(args: readonly string[], cwd: string | undefined): boolean {
  const inFolder = cwd === undefined ? [] : readdirSync(cwd);
  return args.includes("--config") || inFolder.some((name) => name.startsWith("signalbox.config."));
}

export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command until it exits. */
export async function runCliProcess(
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string } = {},
): Promise<CliResult> {
  const child = spawnCli(args, options);
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout, stderr };
}

function firstLine(
  child: ChildProcessByStdio<null, Readable, Readable>,
  stderr: () => string,
): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      const end = text.indexOf("\n");
      if (end !== -1) resolve(text.slice(0, end));
    });
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${stderr()}`)));
  });
}
