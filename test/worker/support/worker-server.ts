/** A server process that runs a program of `test/worker/programs`. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeFile } from "node:fs/promises";
import type { ConfigFileInput } from "../../../packages/signalbox/src/config/index.ts";
import { CLUSTER_ENVIRONMENT } from "../../support/cluster.ts";
import { IMMORTAL, patiently } from "../../support/patience.ts";
import { freePort } from "../../support/free-port.ts";
import { openTestPostgres, type TestPostgres } from "../../support/test-postgres.ts";
import { ROOT_TOKEN } from "../../support/root-token.ts";
import { type ServerProcess, startServerProcess } from "../../support/server-process.ts";

export const PROGRAMS = join(import.meta.dirname, "../programs");

export interface WorkerServer extends ServerProcess {
  readonly folder: string;
  /** Kills the process and starts another on the same data, port and program. */
  killAndRestart(): Promise<WorkerServer>;
  /** Starts another on the same data, port and program after the process has ended by itself, with further variables. */
  restart(env?: Record<string, string>): Promise<WorkerServer>;
  /** Ends the process and removes its data. */
  remove(): Promise<void>;
}

export interface WorkerOptions {
  readonly env?: Record<string, string>;
  readonly file?: ConfigFileInput;
  readonly args?: readonly string[];
  /** Default 1: a process that is alone. */
  readonly nodes?: number;
}

/** Runs all tests of this folder on a cluster: each program is on two nodes, and the tests use the first one. */
const NODES = Number(process.env["SIGNALBOX_TEST_NODES"] ?? 1);

export async function startWorker(program: string, options: WorkerOptions = {}): Promise<WorkerServer> {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-worker-"));
  const { nodes = NODES } = options;
  const postgres = nodes > 1 ? await openTestPostgres() : null;
  // While it is down between two starts, nothing else may take its port.
  return start({ program, options, folder, nodes, postgres }, String(await freePort()));
}

interface Started {
  readonly program: string;
  readonly options: WorkerOptions;
  readonly folder: string;
  readonly nodes: number;
  /** Null for a process that is alone. */
  readonly postgres: TestPostgres | null;
}

async function start(started: Started, port: string): Promise<WorkerServer> {
  const { folder, nodes, postgres } = started;
  const first = await startNode(started, 1, port);
  // The others own about half of the objects.
  const others = await Promise.all(
    Array.from({ length: nodes - 1 }, (_, i) => startNode(started, i + 2, "0")),
  );
  const all = [first, ...others];
  const restart = (env: Record<string, string> = {}) => {
    const options = { ...started.options, env: { ...started.options.env, ...env } };
    return start({ ...started, options }, new URL(first.url).port);
  };
  return {
    ...first,
    folder,
    async killAndRestart() {
      await Promise.all(all.map((node) => node.end("SIGKILL")));
      return restart();
    },
    restart,
    async remove() {
      await Promise.all(all.map((node) => node.kill()));
      await postgres?.drop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function startNode(
  { program, options, folder, postgres }: Started,
  node: number,
  port: string,
): Promise<ServerProcess> {
  const { file = {}, args = [], env = {} } = options;
  const config = join(folder, `signalbox-${node}.config.json`);
  // All nodes are killed together, and none of them waits for another one to be dead.
  const cluster = options.nodes === undefined ? {} : IMMORTAL;
  const text = JSON.stringify(patiently({ cluster, ...file, agents: { access: "worker", ...file.agents } }));
  await writeFile(config, text);
  const data = ["--data-dir", join(folder, `data-${node}`), "--config", config];
  const membership = postgres === null ? [] : ["--database-url", postgres.url, "--node-name", `node-${node}`];
  return startServerProcess(
    [...data, "--worker", join(PROGRAMS, program), "--port", port, ...membership, ...args],
    {
      cwd: PROGRAMS,
      env: {
        ...(postgres === null ? {} : CLUSTER_ENVIRONMENT),
        SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN,
        SIGNALBOX_NO_REEXEC: "1",
        ...env,
      },
    },
  );
}
