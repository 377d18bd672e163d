/**
 * Restarts `signalbox serve` once, with settings that the C library, V8 and Node read only at process start:
 *
 * - two malloc arenas and a small young generation: less resident memory;
 * - code and heap on large pages where the system has them: less CPU time (figures: docs/benchmarks.md);
 * - the compile cache in the environment, so that worker threads use it, and filled in advance if the server runs from TypeScript.
 *
 * 1. The restart is optional. If it is switched off (`--no-reexec`, `SIGNALBOX_NO_REEXEC`) or impossible, the server runs without it.
 * 2. The restarted process has `SIGNALBOX_NO_REEXEC` in its environment, so that it does not restart again.
 * 3. The process id does not change: `execve` replaces the program, it does not start a child.
 */
import { spawnSync } from "node:child_process";
import { accessSync, constants, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const SWITCH = "SIGNALBOX_NO_REEXEC";
const FLAGS = ["--max-semi-space-size=8", "--use-largepages=silent"];
/** Folders with the TypeScript sources that a server loads. */
const SOURCES = ["../src", "../../protocol/src"];

/** Does not return if the restart succeeds. `main` is the URL of the CLI's module, `cache` the folder of the compile cache. */
export function reexec(main, cache) {
  const isPossible = process.platform !== "win32" && process.execve !== undefined;
  if (process.argv[2] !== "serve" || isSwitchedOff() || !isPossible) return;
  const environment = {
    GLIBC_TUNABLES: "glibc.malloc.hugetlb=1",
    MALLOC_ARENA_MAX: "2",
    ...process.env,
    NODE_COMPILE_CACHE: cache,
    [SWITCH]: "1",
  };
  // After `--`, Node ignores `--env-file`, which is an option of Signalbox here.
  const args = [process.execPath, ...FLAGS, ...process.execArgv, "--", ...process.argv.slice(1)];
  try {
    // `process.execve` aborts the process if the system call fails. A replaced or deleted binary is the likely cause.
    accessSync(process.execPath, constants.X_OK);
    if (main.pathname.endsWith(".ts")) warmCache(main, cache);
    process.execve(process.execPath, args, environment);
  } catch (error) {
    process.stderr.write(
      `signalbox: cannot restart with memory settings, continuing without: ${error.message}\n`,
    );
  }
}

function isSwitchedOff() {
  const variable = process.env[SWITCH] ?? "";
  return process.argv.includes("--no-reexec") || !["", "0", "false"].includes(variable);
}

/**
 * Fills the compile cache in a child process. A process that compiles TypeScript keeps Node's compiler, about 30 MB, in memory; with a full
 * cache the server does not load it. Both processes together take as long as the server alone. Skipped if no source has changed, or if a
 * file cannot be read or written: the server then compiles the sources itself.
 */
export function warmCache(main, cache) {
  const stamp = join(cache, `warm-${process.version}`);
  let files;
  try {
    files = SOURCES.flatMap((folder) => listTypeScript(folder));
    const warmedAt = statSync(stamp, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (files.every((file) => statSync(file).mtimeMs < warmedAt)) return;
    // Written first: a source that changes during the work is then newer, and a second server does not repeat the work.
    mkdirSync(cache, { recursive: true });
    writeFileSync(stamp, "");
  } catch {
    return;
  }
  // Worker modules throw outside a worker thread, but only after they are compiled.
  const workers = files.filter((file) => file.endsWith(".worker.ts")).map((file) => pathToFileURL(file));
  // The command line loads the service on demand.
  const served = ["serve-modules.ts", "processes/member.ts", "processes/supervisor.ts"].map(
    (name) => new URL(name, main),
  );
  const script = [main, ...served, ...workers]
    .map((url) => `await import("${url}").catch(() => undefined);`)
    .join("\n");
  spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    stdio: "ignore",
    env: { ...process.env, NODE_COMPILE_CACHE: cache },
  });
}

function listTypeScript(folder) {
  const path = fileURLToPath(new URL(folder, import.meta.url));
  return readdirSync(path, { recursive: true })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(path, name));
}
