/**
 * This process and its PostgreSQL, as operators see them: whether the server answers, what it has lost, and which of its settings are unsafe.
 *
 * Invariants:
 * 1. Nothing here ends the process: a server that restarts, fails over or hangs is waited for.
 * 2. A loss of acknowledged commits is logged at the highest level and stays visible until the process ends.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Lease } from "../cluster/index.ts";
import { repeat, type Repetition } from "../core/repeat.ts";
import type { ServerSetting } from "../database/postgres/durability.ts";
import type { LostCommits } from "../database/postgres/node-session.ts";
import type { PostgresDatabase } from "../database/postgres/postgres-database.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Settings change rarely, by hand. */
const SETTINGS_INTERVAL_MS = 3_600_000;

/** Acknowledged commits that PostgreSQL has lost since the start. Exists before the database is open. */
export class CommitLosses {
  readonly #logger: Logger;
  count = 0;
  writes = 0;
  lastAt: number | null = null;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  record(lost: LostCommits): void {
    this.count += 1;
    this.writes += lost.writes;
    this.lastAt = Date.now();
    this.#logger.fatal(
      lost,
      "PostgreSQL has lost commits that it had acknowledged: a standby without them became the primary, a backup was restored, or the server crashed without fsync. Compare the old server with the new one; Signalbox continues with what the new one has",
    );
  }
}

export interface DatabaseNodeParts {
  readonly database: PostgresDatabase;
  readonly losses: CommitLosses;
  readonly maxStaleMs: number;
  readonly logger: Logger;
}

export class DatabaseNode {
  readonly maxStaleMs: number;
  readonly #database: PostgresDatabase;
  readonly #losses: CommitLosses;
  readonly #logger: Logger;
  #settings: readonly ServerSetting[] = [];
  #reading: Repetition | null = null;

  constructor({ database, losses, maxStaleMs, logger }: DatabaseNodeParts) {
    this.#database = database;
    this.#losses = losses;
    this.maxStaleMs = maxStaleMs;
    this.#logger = logger;
  }

  /** Reports unsafe settings, from now on. */
  async start(): Promise<void> {
    const read = async () => this.#report(await this.#database.readDurability());
    const onError = (err: unknown) => this.#logger.warn({ err }, "cannot read the settings of PostgreSQL");
    await read().catch(onError);
    this.#reading = repeat(SETTINGS_INTERVAL_MS, read, onError);
  }

  /** The process stops, and no client waits for its answers any more: nothing waits for a server that is away. */
  hurry(): void {
    this.#database.hurry();
  }

  /** PostgreSQL has another server, was restarted, or does not answer: connections other than those of the control plane must be opened anew. */
  onOtherServer(listener: () => void): void {
    this.#database.onOtherServer(listener);
  }

  /** What this node has in memory may be too old to answer with. */
  get isStale(): boolean {
    return this.#database.session.heartbeats.isStale(this.maxStaleMs);
  }

  /**
   * Whether a request may be handled: null for at once, otherwise when the promise resolves. Throws `node_stale` if what is in memory is too
   * old. In a cluster the lease is stricter.
   */
  admit(lease: Lease | null): Promise<void> | null {
    if (this.isStale) throw new SignalboxError("node_stale", { headers: { "retry-after": "5" } });
    return lease?.check() ?? null;
  }

  get session(): PostgresDatabase["session"] {
    return this.#database.session;
  }

  /** The current identity of this process in PostgreSQL. */
  get incarnation(): string {
    return this.#database.session.identity.inc;
  }

  get settings(): readonly ServerSetting[] {
    return this.#settings;
  }

  get losses(): Pick<CommitLosses, "count" | "writes" | "lastAt"> {
    return this.#losses;
  }

  async close(): Promise<void> {
    await this.#reading?.stop();
  }

  #report(settings: readonly ServerSetting[]): void {
    const before = this.#settings;
    this.#settings = settings;
    for (const { name, value, isSafe, note } of settings) {
      const isKnown = before.some((other) => other.name === name && other.value === value);
      if (isKnown || note === null) continue;
      const text = `PostgreSQL has ${name} = ${value === "" ? "''" : value}: ${note}`;
      if (isSafe) this.#logger.info(text);
      else this.#logger.warn(text);
    }
  }
}
