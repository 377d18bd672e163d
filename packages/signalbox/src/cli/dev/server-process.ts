/**
 * The process of the service that `signalbox dev` runs.
 *
 *   loading → starting → serving → ended
 *
 * Each of them can be the last. A process that has a predecessor waits between loading and starting until `go` is called; another one does not.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { STANDBY_VARIABLE } from "./stand-by.ts";

/** How long the service may take to stop in order. What it stores survives a kill. */
const STOP_MS = 1500;
/** How long a change waits for a start in progress, so that frequent changes do not prevent every start. */
export const START_MS = 10_000;
/** JavaScript in the published package, TypeScript in the repository. */
const REPORT_FILES = new URL(
  import.meta.url.endsWith(".ts") ? "./report-files.ts" : "./report-files.js",
  import.meta.url,
).href;

export interface ServerProcessOptions {
  readonly args: readonly string[];
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Another process may use the data folder and the port until `go` is called. */
  readonly standsBy: boolean;
  readonly onFile: (path: string) => void;
  readonly onServing: (url: string) => void;
  /** Not called for an end that `end` has caused, nor for the end of a process that stands by. */
  readonly onEnd: (code: number | null, wasServing: boolean) => void;
}

type Message = { readonly file: string } | { readonly loaded: true } | { readonly serving: string };

export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #loaded = Promise.withResolvers<boolean>();
  readonly #started = Promise.withResolvers<void>();
  readonly #onEnd: () => void;
  #standsBy: boolean;
  #isServing = false;
  #isEnding = false;

  constructor(options: ServerProcessOptions) {
    this.#standsBy = options.standsBy;
    // Not restarted with memory settings: that would lose the channel of the messages.
    this.#child = spawn(
      process.execPath,
      ["--import", REPORT_FILES, "--", process.argv[1] ?? "", "serve", "--no-reexec", ...options.args],
      {
        stdio: ["inherit", "inherit", "inherit", "ipc"],
        cwd: options.folder,
        env: { ...options.environment, ...(options.standsBy ? { [STANDBY_VARIABLE]: "1" } : {}) },
      },
    );
    this.#child.on("message", (message: Message) => {
      if ("file" in message) options.onFile(message.file);
      else if ("loaded" in message) this.#loaded.resolve(true);
      else {
        this.#isServing = true;
        options.onServing(message.serving);
        this.#started.resolve();
      }
    });
    this.#onEnd = () => {
      this.#loaded.resolve(false);
      this.#started.resolve();
      if (!this.#isEnding && !this.#standsBy) options.onEnd(this.#child.exitCode, this.#isServing);
    };
    this.#child.once("error", () => {
      // Otherwise: a message or a signal to a process that has just ended.
      if (this.#child.pid === undefined) this.#onEnd();
    });
    this.#child.once("exit", () => this.#onEnd());
  }

  get isServing(): boolean {
    return this.#isServing && !this.#hasEnded;
  }

  /** For a process that stands by: whether it is loaded and may serve. False if it has ended before, or the signal aborts. */
  async loaded(signal: AbortSignal): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const stop = () => resolve(false);
    signal.addEventListener("abort", stop, { once: true });
    const isLoaded = await Promise.race([this.#loaded.promise, promise]);
    signal.removeEventListener("abort", stop);
    return isLoaded && !signal.aborted;
  }

  /** The predecessor has ended. */
  go(): void {
    this.#standsBy = false;
    if (this.#hasEnded) this.#onEnd();
    // It may end at this moment, which is reported by itself.
    else this.#child.send({ go: true }, () => undefined);
  }

  /** Resolves when the service serves or has ended; at the latest when the signal aborts or the time is up. */
  async settled(signal: AbortSignal): Promise<void> {
    const done = new AbortController();
    const limit = sleep(START_MS, undefined, { signal: AbortSignal.any([signal, done.signal]), ref: false });
    // Rejects when it is no longer needed.
    await Promise.race([this.#started.promise, limit.catch(() => undefined)]);
    done.abort();
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    if (this.#hasEnded || this.#child.pid === undefined) return;
    const ended = once(this.#child, "exit");
    // One that stands by has opened nothing, and may be in an endless loop.
    this.#child.kill(this.#standsBy ? "SIGKILL" : "SIGTERM");
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), STOP_MS);
    await ended;
    clearTimeout(timer);
  }

  get #hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }
}
