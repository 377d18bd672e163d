/**
 * The process of the service that `signalbox dev` runs.
 *
 *   starting → serving → ended
 *   starting → ended
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

/** How long the service may take to stop in order. What it stores survives a kill. */
const STOP_MS = 1500;
/** How long a change waits for a start in progress, so that frequent changes do not prevent every start. */
const START_MS = 10_000;
/** JavaScript in the published package, TypeScript in the repository. */
const REPORT_FILES = new URL(
  import.meta.url.endsWith(".ts") ? "./report-files.ts" : "./report-files.js",
  import.meta.url,
).href;

export interface ServerProcessOptions {
  readonly args: readonly string[];
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly onFile: (path: string) => void;
  readonly onServing: (url: string) => void;
  /** Not called for an end that `end` has caused. */
  readonly onEnd: (code: number | null, wasServing: boolean) => void;
}

type Message = { readonly file: string } | { readonly serving: string };

export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #started: Promise<void>;
  #isServing = false;
  #isEnding = false;

  constructor(options: ServerProcessOptions) {
    // Not restarted with memory settings: that would lose the channel of the messages.
    this.#child = spawn(
      process.execPath,
      ["--import", REPORT_FILES, "--", process.argv[1] ?? "", "serve", "--no-reexec", ...options.args],
      { stdio: ["inherit", "inherit", "inherit", "ipc"], cwd: options.folder, env: options.environment },
    );
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#started = promise;
    this.#child.on("message", (message: Message) => {
      if ("file" in message) options.onFile(message.file);
      else if ("serving" in message) {
        this.#isServing = true;
        options.onServing(message.serving);
        resolve();
      }
    });
    this.#child.once("error", () => resolve());
    this.#child.once("exit", (code) => {
      resolve();
      if (!this.#isEnding) options.onEnd(code, this.#isServing);
    });
  }

  get isServing(): boolean {
    return this.#isServing && !this.#hasEnded;
  }

  /** Resolves when the service serves or has ended; at the latest when the signal aborts or the time is up. */
  async settled(signal: AbortSignal): Promise<void> {
    const done = new AbortController();
    const limit = sleep(START_MS, undefined, { signal: AbortSignal.any([signal, done.signal]), ref: false });
    // Rejects when it is no longer needed.
    await Promise.race([this.#started, limit.catch(() => undefined)]);
    done.abort();
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    if (this.#hasEnded || this.#child.pid === undefined) return;
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), STOP_MS);
    await ended;
    clearTimeout(timer);
  }

  get #hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }
}
