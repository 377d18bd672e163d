/**
 * One node of the cluster under test: a real `signalbox serve` process that is killed, paused and started again.
 *
 *   down ──start──► living ──pause──► paused ──resume──► living
 *     ▲                └───────kill───────┘
 *     └───────────────────┘
 */
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { type ServerProcess, startServerProcess } from "../../support/server-process.ts";
import type { SmallDisk } from "../../support/small-disk.ts";
import type { FakeClock } from "./fake-clock.ts";
import { Isolation } from "./isolation.ts";
import type { LoadTarget } from "./load-target.ts";
import { ReadinessRecord } from "./readiness-record.ts";

export interface ChaosNodeOptions {
  readonly name: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** By cluster port of another node: the port of the proxy to it. */
  readonly redirects: Readonly<Record<string, number>>;
  /** Its data folder is here, if given. */
  readonly disk?: SmallDisk;
  readonly clock?: FakeClock;
  /** The process ended although nobody killed it. */
  readonly onExit: (name: string, reason: string) => void;
}

const REDIRECT = pathToFileURL(join(import.meta.dirname, "../../support/redirect-preload.ts")).href;

/** More than faults of PostgreSQL can explain. */
const MAX_STARTS = 5;
const START_PAUSE_MS = 500;

export class ChaosNode implements LoadTarget {
  readonly name: string;
  readonly isolation = new Isolation();
  readonly readiness = new ReadinessRecord();
  readonly #options: ChaosNodeOptions;
  readonly #kills: number[] = [];
  readonly #servers: ServerProcess[] = [];
  readonly disk: SmallDisk | null;
  readonly clock: FakeClock | null;
  #server: ServerProcess | null = null;
  #isExpectedToEnd = false;
  #isPaused = false;
  #resumedAt = -Infinity;
  #failedStarts = 0;

  constructor(options: ChaosNodeOptions) {
    this.name = options.name;
    this.#options = options;
    this.disk = options.disk ?? null;
    this.clock = options.clock ?? null;
  }

  /** Null while the process is down or not listening yet. */
  get url(): string | null {
    return this.#server?.url ?? null;
  }

  get clockStepMs(): number {
    return this.clock?.stepMs ?? 0;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Times of the kills. */
  get kills(): readonly number[] {
    return this.#kills;
  }

  /** Lines of all processes of this node that mention one of the texts. */
  logged(texts: readonly string[]): string[] {
    return this.#servers
      .flatMap((server) => server.stderr().split("\n"))
      .filter((line) => texts.some((text) => line.includes(text)));
  }

  async start(): Promise<void> {
    const { args, env, redirects, onExit, disk, clock } = this.#options;
    const server = await startServerProcess([...args, "--node-name", this.name, "--log-level", "warn"], {
      env: {
        ...env,
        ...clock?.environment,
        NODE_OPTIONS: `--import ${REDIRECT}`,
        CHAOS_NODE: this.name,
        SIGNALBOX_NO_REEXEC: "1",
        SIGNALBOX_TEST_REDIRECTS: JSON.stringify(redirects),
      },
      ...(disk === undefined ? {} : { through: disk.through }),
    });
    this.#isExpectedToEnd = false;
    server.child.once("exit", (code, signal) => {
      if (this.#server === server) this.#server = null;
      if (!this.#isExpectedToEnd)
        onExit(this.name, `code ${code}, signal ${signal}: ${server.stderr().slice(-1000)}`);
    });
    this.#server = server;
    this.#servers.push(server);
  }

  /** As a supervisor does: a node that cannot start, because PostgreSQL went away meanwhile, is started again. */
  async startAgain(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.start();
        return;
      } catch (error) {
        if (attempt === MAX_STARTS) throw error;
        this.#failedStarts += 1;
        await sleep(START_PAUSE_MS);
      }
    }
  }

  /** How often a start had to be repeated. */
  get failedStarts(): number {
    return this.#failedStarts;
  }

  async kill(): Promise<void> {
    const server = this.#server;
    if (server === null) return;
    this.#isExpectedToEnd = true;
    this.#isPaused = false;
    this.#server = null;
    this.#kills.push(performance.now());
    await server.kill();
  }

  /** Stops gracefully; resolves with the exit code. */
  async terminate(): Promise<number | null> {
    const server = this.#server;
    if (server === null) return null;
    this.#isExpectedToEnd = true;
    this.#server = null;
    return server.end("SIGTERM");
  }

  pause(): void {
    this.#isPaused = this.#server?.child.kill("SIGSTOP") === true;
  }

  resume(): void {
    if (this.#isPaused) this.#resumedAt = performance.now();
    this.#isPaused = false;
    this.#server?.child.kill("SIGCONT");
  }

  /**
   * Whether a request that began at `since` may have been broken by a kill, or has timed out in a pause. No request begins between a kill and
   * the next start, which has another port.
   */
  mayHaveBrokenSince(since: number): boolean {
    return this.#kills.some((at) => at >= since) || this.#resumedAt >= since;
  }
}
