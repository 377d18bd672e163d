/**
 * `signalbox dev`: runs the service in a child process and restarts it when a source or configuration file changes: below the working folder, or
 * imported from elsewhere.
 *
 * 1. Changes that come together cause one restart, and the last change is always served.
 * 2. The version that runs stays until the next one is loaded: a syntax error, a wrong setting, a missing package or an error of a module that runs
 *    changes nothing for clients. The next change is tried at once.
 * 3. The address stays, also with `--port 0`, and so does what is stored.
 */
import { existsSync } from "node:fs";
import { basename, relative, resolve, sep } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { dataDirOf } from "../config/data-dir.ts";
import { type Command, type CommandContext, UsageError } from "./command.ts";
import { findBroken } from "./dev/check-syntax.ts";
import { ServerProcess, START_MS } from "./dev/server-process.ts";
import { SourceWatch } from "./dev/source-watch.ts";
import { readEnvironment } from "./environment.ts";
import { SERVE_OPTIONS } from "./options.ts";

/** Sources, configuration, and what a worker imports as text, bytes or WebAssembly. */
const WATCHED =
  /(\.([mc]?ts|tsx|[mc]?js|jsx|jsonc?|toml|sql|txt|html|md|svg|css|wasm|bin)|^\.(env|dev\.vars).*)$/;
const IGNORED_FOLDERS = new Set(["node_modules", ".git", "dist", ".signalbox", "coverage"]);
/** Editors write a file in several steps, and other tools write many files: a restart waits until nothing has changed for so long. */
const SETTLE_MS = 100;
/** The longest wait for that. */
const MAX_SETTLE_MS = 2000;

export const dev: Command = {
  words: ["dev"],
  summary: "Run the service and restart it when a file changes.",
  // A version that waits for the next change is one process.
  options: SERVE_OPTIONS.filter(({ name }) => name !== "processes"),
  async run(context) {
    const stopping = new AbortController();
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(name, () => stopping.abort());
    await new Dev(context, stopping.signal).run();
  },
};

class Dev {
  readonly #context: CommandContext;
  readonly #signal: AbortSignal;
  readonly #args = process.argv.slice(process.argv.indexOf("dev") + 1);
  readonly #changed = new Set<string>();
  /** Files that the service has imported. Others may be half-written without harm. */
  readonly #imported = new Set<string>();
  #broken: readonly string[] = [];
  #wake: () => void = () => undefined;
  #port: string | null = null;
  #watch: SourceWatch;
  #server: ServerProcess;

  constructor(context: CommandContext, signal: AbortSignal) {
    this.#context = context;
    this.#signal = signal;
    const { workingFolder: folder } = context;
    const dataFolder = dataFolderOf(context);
    this.#watch = new SourceWatch({
      folder,
      isSource: (path) => WATCHED.test(basename(path)),
      isIgnored: (path) => path === dataFolder || (path !== folder && IGNORED_FOLDERS.has(basename(path))),
      onChange: (path) => {
        this.#changed.add(path);
        this.#wake();
      },
      onError: (path, error) => this.#say(`cannot watch ${path}: ${error.message}`),
    });
    for (const name of ["config", "env-file"]) {
      const file = context.option(name);
      if (file !== undefined) this.#watch.add(resolve(folder, file));
    }
    for (const name of ["agents", "worker", "wrangler"])
      for (const file of context.options(name)) this.#watch.add(resolve(folder, file));
    this.#server = this.#start();
  }

  async run(): Promise<void> {
    while (!this.#signal.aborted) {
      await this.#nextChange();
      if (!this.#signal.aborted) await this.#restart();
    }
    this.#watch.close();
    await this.#server.end();
  }

  /** Resolves when files have changed and the changes have come to an end. */
  async #nextChange(): Promise<void> {
    const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
    this.#signal.addEventListener("abort", () => stop(), { once: true });
    if (this.#changed.size === 0)
      await Promise.race([stopped, new Promise<void>((resolve) => (this.#wake = resolve))]);
    const until = performance.now() + MAX_SETTLE_MS;
    let count = -1;
    this.#wake = () => (count = -1);
    while (count !== this.#changed.size && performance.now() < until && !this.#signal.aborted) {
      count = this.#changed.size;
      // Rejects when the command ends, which the loop sees.
      await sleep(SETTLE_MS, undefined, { signal: this.#signal }).catch(() => undefined);
    }
    this.#wake = () => undefined;
  }

  async #restart(): Promise<void> {
    const { workingFolder: folder, err } = this.#context;
    if (!existsSync(folder)) {
      this.#changed.clear();
      this.#say(`${folder} is gone; waiting until it is back`);
      return;
    }
    const changed = [...this.#changed];
    const candidates = new Set([...changed, ...this.#broken].filter((path) => this.#imported.has(path)));
    const broken = await findBroken(candidates, folder, err.isTTY === true);
    this.#broken = broken.map(({ path }) => path);
    if (broken.length > 0) {
      for (const path of changed) this.#changed.delete(path);
      err.write(`\n${broken.map(({ text }) => text).join("")}`);
      this.#sayWaiting();
      return;
    }
    this.#say(`\n${this.#describe(changed)} changed, restarting`);
    const since = performance.now();
    await this.#server.settled(this.#signal);
    // What has changed until here is in the next version.
    this.#changed.clear();
    const next = this.#start(since);
    if (await this.#isLoaded(next)) {
      await this.#server.end();
      this.#server = next;
      next.go();
      return;
    }
    await next.end();
    if (!this.#signal.aborted) await this.#failed();
  }

  /** False also when a change comes and the version has had time enough to load. */
  async #isLoaded(next: ServerProcess): Promise<boolean> {
    const replaced = new AbortController();
    const timer = setTimeout(() => {
      if (this.#changed.size > 0) replaced.abort();
      else this.#wake = () => replaced.abort();
    }, START_MS);
    const isLoaded = await next.loaded(AbortSignal.any([this.#signal, replaced.signal]));
    clearTimeout(timer);
    this.#wake = () => undefined;
    return isLoaded;
  }

  /** `since`: when a change was noticed, for the report of the restart; undefined for the first version, which has no predecessor. */
  #start(since?: number): ServerProcess {
    const isFirst = this.#port === null;
    const server = new ServerProcess({
      args: isFirst ? this.#args : withPort(this.#args, this.#port ?? ""),
      folder: this.#context.workingFolder,
      standsBy: since !== undefined,
      environment: {
        ...process.env,
        // Also if the configuration file names more.
        SIGNALBOX_PROCESSES: "1",
        ...(isFirst ? {} : { SIGNALBOX_RESTARTED: "1", PORT: this.#port ?? "" }),
      },
      onFile: (path) => {
        this.#imported.add(path);
        if (relative(this.#context.workingFolder, path).startsWith(`..${sep}`)) this.#watch.add(path);
      },
      onServing: (url) => {
        this.#port ??= new URL(url).port || null;
        if (since !== undefined) this.#say(`ready in ${((performance.now() - since) / 1000).toFixed(1)} s`);
      },
      onEnd: (code, wasServing) => void this.#ended(code, wasServing),
    });
    return server;
  }

  async #ended(code: number | null, wasServing: boolean): Promise<void> {
    if (this.#signal.aborted) return;
    if (wasServing) this.#say(`the service ended (code ${code}); waiting for a change`);
    else await this.#failed();
  }

  /** A version could not start. It has written why, unless the text has no place. */
  async #failed(): Promise<void> {
    const { workingFolder, err } = this.#context;
    const broken = await findBroken(this.#imported, workingFolder, err.isTTY === true);
    this.#broken = broken.map(({ path }) => path);
    if (broken.length > 0) err.write(`\n${broken.map(({ text }) => text).join("")}`);
    this.#sayWaiting();
  }

  #sayWaiting(): void {
    this.#say(
      this.#server.isServing
        ? "the version before the error still runs; waiting for a change"
        : "waiting for a change",
    );
  }

  #describe(paths: readonly string[]): string {
    const [first = ""] = paths;
    const name = relative(this.#context.workingFolder, first);
    return paths.length === 1 ? name : `${name} and ${paths.length - 1} more`;
  }

  #say(text: string): void {
    this.#context.err.write(`${text}\n`);
  }
}

/** Not watched: the service writes to it at every start. An env file that cannot be read is an error of `serve`, which waits for a change. */
function dataFolderOf(context: CommandContext): string {
  let { environment } = context;
  try {
    environment = readEnvironment(context);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
  }
  return dataDirOf(context.option("data-dir"), environment, context.workingFolder);
}

/** `--port 0` chooses a port once, not at every restart. */
function withPort(args: readonly string[], port: string): string[] {
  return args.map((arg, index) =>
    arg === "--port=0" ? `--port=${port}` : arg === "0" && args[index - 1] === "--port" ? port : arg,
  );
}
