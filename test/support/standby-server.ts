/**
 * Server processes for tests that kill many of them. Most of a start is loading code, so the next process loads it
 * while the current one runs and then waits for "go". From there it is the normal command line.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Readable } from "node:stream";

const CLI = join(import.meta.dirname, "../../packages/signalbox/bin/signalbox.js");
/** A restarted process would wait for another "go". */
const NO_REEXEC = { SIGNALBOX_NO_REEXEC: "1" };
const WAIT_FOR_GO = new URL("standby-preload.ts", import.meta.url).href;

export interface StandbyOptions {
  /** Arguments after `serve --json --port 0`. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface StartedServer {
  readonly url: string;
  /** Sends the signal and resolves with the exit code (null after a kill). */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/** One server after another on the same data folder. The next process loads its code while the current one runs. */
export class StandbyServers {
  readonly #options: StandbyOptions;
  #current: StandbyServer | null = null;
  #next: StandbyServer;

  constructor(options: StandbyOptions) {
    this.#options = options;
    this.#next = new StandbyServer(options);
  }

  /** Resolves when the server listens. The earlier server must have ended. */
  start(): Promise<StartedServer> {
    return this.#takeNext().start();
  }

  /** Starts a server that need not listen when it is killed. */
  startOnly(): StandbyServer {
    const server = this.#takeNext();
    server.startOnly();
    return server;
  }

  /** Kills the processes that still run. */
  async close(): Promise<void> {
    await Promise.all([this.#current?.end("SIGKILL"), this.#next.end("SIGKILL")]);
  }

  #takeNext(): StandbyServer {
    this.#current = this.#next;
    this.#next = new StandbyServer(this.#options);
    return this.#current;
  }
}

export class StandbyServer {
  readonly #child: ChildProcess;
  readonly #exit: Promise<unknown[]>;
  #errors = "";

  constructor({ args, env }: StandbyOptions) {
    this.#child = spawn(
      process.execPath,
      ["--import", WAIT_FOR_GO, CLI, "serve", "--json", "--port", "0", ...args],
      {
        stdio: ["ignore", "pipe", "pipe", "ipc"],
        env: { ...process.env, ...NO_REEXEC, ...env },
      },
    );
    this.#exit = once(this.#child, "exit");
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => (this.#errors += text));
  }

  /** Sends "go"; resolves when the server listens. */
  async start(): Promise<StartedServer> {
    const line = this.#firstLine();
    this.#child.send("go");
    const { url } = JSON.parse(await line) as { url: string };
    return { url, end: (signal) => this.end(signal) };
  }

  /** Sends "go" and does not wait. */
  startOnly(): void {
    this.#child.send("go");
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    this.#child.kill(signal);
    const [code] = (await this.#exit) as [number | null];
    return code;
  }

  #firstLine(): Promise<string> {
    return new Promise((resolve, reject) => {
      let text = "";
      (this.#child.stdout as Readable).setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
        const end = text.indexOf("\n");
        if (end !== -1) resolve(text.slice(0, end));
      });
      void this.#exit.then(() => reject(new Error(`the server ended before it listened: ${this.#errors}`)));
    });
  }
}
