/**
 * A real file system of a few megabytes that a test can fill: a tmpfs in its own mount namespace, which needs only
 * the right to create user namespaces. Processes are started in it with `through`.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const execute = promisify(execFile);

export interface SmallDisk {
  /** The mount point, for processes in the namespace. */
  readonly folder: string;
  /** A command that runs another command in the namespace, in the same process. */
  readonly through: readonly string[];
  /** Uses all remaining space except for the given number of KiB. */
  fill(leftKib?: number): Promise<void>;
  makeRoom(): Promise<void>;
  /** The text of a file on this disk. */
  read(name: string): Promise<string>;
  write(name: string, text: string): Promise<void>;
  drop(): Promise<void>;
}

export async function openSmallDisk(megabytes: number): Promise<SmallDisk> {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-disk-"));
  const script = `mount -t tmpfs -o size=${megabytes}m tmpfs "$0" && echo ready && exec sleep 1000000`;
  const holder = spawn("unshare", ["-rm", "sh", "-c", script, folder], { stdio: ["ignore", "pipe", "pipe"] });
  await whenReady(holder);
  const through = ["nsenter", "-t", String(holder.pid), "-m", "-U", "--preserve-credentials"];
  const run = async (script: string, ...args: string[]) => {
    const [program = "", ...rest] = [...through, "sh", "-c", script, ...args];
    return (await execute(program, rest)).stdout;
  };
  const ballast = join(folder, "ballast");
  return {
    folder,
    through,
    // The last bytes do not fit, and cat reports an error.
    fill: async (leftKib = 0) =>
      void (await run(
        'cat /dev/zero > "$0" 2>/dev/null || true; truncate -s "-$1K" "$0"',
        ballast,
        String(leftKib),
      )),
    makeRoom: async () => void (await run('rm -f "$0"', ballast)),
    read: (name) => run('cat "$0"', join(folder, name)),
    write: async (name, text) => void (await run('printf %s "$1" > "$0"', join(folder, name), text)),
    async drop() {
      const exit = once(holder, "exit");
      holder.kill("SIGKILL");
      await exit;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Throws, instead of skipping, if namespaces are not allowed: a skipped test proves nothing. */
async function whenReady(holder: ChildProcess): Promise<void> {
  let problem = "";
  holder.stderr?.setEncoding("utf8").on("data", (text: string) => (problem += text));
  holder.once("error", (error) => (problem += error.message));
  await new Promise<void>((resolve, reject) => {
    holder.stdout?.once("data", () => resolve());
    holder.once("close", () => reject(new Error(`no small disk could be mounted here: ${problem}`)));
  });
}
