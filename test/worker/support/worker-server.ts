/** A server process that runs a program of `test/worker/programs`. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeFile } from "node:fs/promises";
import type { ConfigFileInput } from "../../../packages/signalbox/src/config/index.ts";
import { ROOT_TOKEN } from "../../support/root-token.ts";
import { type ServerProcess, startServerProcess } from "../../support/server-process.ts";

export const PROGRAMS = join(import.meta.dirname, "../programs");

export interface WorkerServer extends ServerProcess {
  readonly folder: string;
  /** Kills the process and starts another on the same data, port and program. */
  killAndRestart(): Promise<WorkerServer>;
  /** Starts another on the same data, port and program after the process has ended by itself. */
  restart(): Promise<WorkerServer>;
  /** Ends the process and removes its data. */
  remove(): Promise<void>;
}

export interface WorkerOptions {
  readonly env?: Record<string, string>;
  readonly file?: ConfigFileInput;
  readonly args?: readonly string[];
}

export async function startWorker(program: string, options: WorkerOptions = {}): Promise<WorkerServer> {
  return start(program, options, await mkdtemp(join(tmpdir(), "signalbox-worker-")), "0");
}

async function start(
  program: string,
  options: WorkerOptions,
  folder: string,
  port: string,
): Promise<WorkerServer> {
  const { file = {}, args = [], env = {} } = options;
  const config = join(folder, "signalbox.config.json");
  await writeFile(config, JSON.stringify({ ...file, agents: { access: "worker", ...file.agents } }));
  const server = await startServerProcess(
    [
      "--data-dir",
      join(folder, "data"),
      "--config",
      config,
      "--worker",
      join(PROGRAMS, program),
      "--port",
      port,
      ...args,
    ],
    { cwd: PROGRAMS, env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN, SIGNALBOX_NO_REEXEC: "1", ...env } },
  );
  return {
    ...server,
    folder,
    async killAndRestart() {
      await server.end("SIGKILL");
      return start(program, options, folder, new URL(server.url).port);
    },
    restart: () => start(program, options, folder, new URL(server.url).port),
    async remove() {
      await server.kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
