/** Servers for what others wrote: one, or with `NODES=3` the nodes of a cluster on one PostgreSQL. Models of `env.AI` repeat what they are asked. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTestCluster } from "../../test/support/cluster.ts";
import { startServerProcess } from "../../test/support/server-process.ts";

export interface Servers {
  /** Of each node. */
  readonly urls: readonly string[];
  /** What the nodes have logged. */
  log(): string;
  stop(): Promise<void>;
}

const NODES = Number(process.env["NODES"] ?? 1);
const START_MS = 120_000;
const FILE = { agents: { access: "worker", ai: { models: { "*": "echo/echo" } } } } as const;

/** `entry` and `wrangler` are absolute paths. */
export async function startServers(
  folder: string,
  entry: string,
  wrangler: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Servers> {
  const args = ["--worker", entry, "--wrangler", wrangler, "--log-level", "error"];
  const starting = NODES > 1 ? startCluster(args, env) : startOne(folder, args, env);
  // Of a start that hangs, the processes end with this one.
  starting.catch(() => undefined);
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`not started after ${START_MS / 1000} s`)), START_MS);
  try {
    return await Promise.race([starting, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function startOne(cwd: string, args: readonly string[], env: Record<string, string>): Promise<Servers> {
  const data = await mkdtemp(join(tmpdir(), "signalbox-originals-"));
  const config = join(data, "signalbox.json");
  await writeFile(config, JSON.stringify(FILE));
  const remove = () => rm(data, { recursive: true, force: true });
  try {
    const all = ["--data-dir", join(data, "data"), "--config", config, ...args];
    const server = await startServerProcess(all, { cwd, env });
    return {
      urls: [server.url],
      log: server.stderr,
      async stop() {
        await server.kill();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function startCluster(args: readonly string[], env: Record<string, string>): Promise<Servers> {
  const cluster = await startTestCluster({ nodes: NODES, args, env, file: FILE });
  return {
    urls: cluster.urls,
    log: () => cluster.nodes.map((node) => node.stderr()).join(""),
    stop: () => cluster.stop(),
  };
}
