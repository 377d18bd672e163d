/**
 * `signalbox dev`: runs the service in a child process and restarts it when a source or configuration file below the working folder
 * changes. If the child fails to start, the next change starts it again. Restarts do not change stored data.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { watch } from "node:fs";
import { sep } from "node:path";
import type { Command } from "./command.ts";
import { SERVE_OPTIONS } from "./options.ts";

/** Sources, configuration, and what a worker imports as text, bytes or WebAssembly. */
const WATCHED =
  /(\.(ts|mts|tsx|js|mjs|jsx|json|jsonc|toml|sql|txt|html|md|svg|css|wasm|bin)|(^|[/\\])\.(env|dev\.vars))$/;
const IGNORED_FOLDERS = new Set(["node_modules", ".git", "dist", ".signalbox", "coverage"]);
/** Editors write a file in several steps; this delay combines them into one restart. */
const SETTLE_MS = 100;

export const dev: Command = {
  words: ["dev"],
  summary: "Run the service and restart it when a file changes.",
  options: SERVE_OPTIONS,
  async run(context) {
    const args = process.argv.slice(process.argv.indexOf("dev") + 1);
    const start = () => {
      // Not restarted with memory settings: that would lose the channel, on which the service reports that it serves.
      const started = spawn(
        process.execPath,
        ["--", process.argv[1] ?? "", "serve", "--no-reexec", ...args],
        {
          stdio: ["inherit", "inherit", "inherit", "ipc"],
          cwd: context.workingFolder,
        },
      );
      started.once("message", () => SERVING.add(started));
      return started;
    };
    let isStopping = false;
    let child = start();
    let restarting: Promise<void> | undefined;
    /** The file that changed last, until a process that has read it runs. */
    let changed: string | null = null;
    const restart = async () => {
      while (changed !== null && !isStopping) {
        await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
        context.err.write(`\n${changed} changed, restarting\n`);
        // Changes in quick succession must not end each process before it serves.
        await settled(child);
        changed = null;
        await end(child);
        child = start();
      }
    };
    const watcher = watch(context.workingFolder, { recursive: true }, (_event, file) => {
      if (file === null || !isWatched(file)) return;
      changed = file;
      restarting ??= restart().finally(() => {
        restarting = undefined;
      });
    });
    await new Promise<void>((resolve) => {
      process.once("SIGINT", () => resolve());
      process.once("SIGTERM", () => resolve());
    });
    isStopping = true;
    watcher.close();
    await restarting;
    await end(child);
  },
};

function isWatched(file: string): boolean {
  return WATCHED.test(file) && !file.split(sep).some((folder) => IGNORED_FOLDERS.has(folder));
}

/** Resolves when the service serves, or could not start. */
async function settled(child: ChildProcess): Promise<void> {
  if (SERVING.has(child) || child.exitCode !== null || child.signalCode !== null) return;
  const waiting = new AbortController();
  const { signal } = waiting;
  await Promise.race([once(child, "message", { signal }), once(child, "exit", { signal })]);
  waiting.abort();
}

const SERVING = new WeakSet<ChildProcess>();

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  await ended;
}
