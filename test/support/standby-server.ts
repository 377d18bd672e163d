/**
 * Server processes for tests that kill many of them. Most of a start is loading code; so the next process loads it while the present one runs,
 * and waits for the word to go on. From there it is the command line as anybody starts it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";

const CLI = join(import.meta.dirname, "../../packages/signalbox/bin/signalbox.js");
/** Halves the time of a start, and a fault test has a hundred of them. */
const COMPILE_CACHE = join(tmpdir(), "signalbox-test-compile-cache");
/** A restarted process would wait for a second message. */
const NO_REEXEC = { SIGNALBOX_NO_REEXEC: "1" };
const WAIT_FOR_THE_WORD = new URL("standby-preload.ts", import.meta.url).href;

export interface StandbyOptions {
  /** Arguments after `serve --json --port 0`. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface KillableServer {
  readonly url: string;
  /** `kill -9`; resolves when the process is gone. */
  kill(): Promise<void>;
}

export class StandbyServer {
  readonly #child: ChildProcess;
  readonly #exit: Promise<unknown>;
  #errors = "";

  constructor({ args, env }: StandbyOptions) {
    this.#child = spawn(
      process.execPath,
      ["--import", WAIT_FOR_THE_WORD, CLI, "serve", "--json", "--port", "0", ...args],
      {
        stdio: ["ignore", "pipe", "pipe", "ipc"],
        env: { ...process.env, ...NO_REEXEC, NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
      },
    );
    this.#exit = once(this.#child, "exit");
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => (this.#errors += text));
  }

  /** Gives the word; resolves when the server listens. */
  async start(): Promise<KillableServer> {
    const line = this.#firstLine();
    this.#child.send("go");
    const { url } = JSON.parse(await line) as { url: string };
    return { url, kill: () => this.kill() };
  }

  /** Gives the word and does not wait. */
  startOnly(): void {
    this.#child.send("go");
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exit;
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
