/**
 * When the WAL is copied into the database, so that SQLite can start it over.
 *
 * Invariants:
 * 1. The event loop does not copy, up to `AUTOCHECKPOINT_PAGES`.
 * 2. SQLite starts the WAL over only after a copy that has every page. If commits follow during each copy, the rest is copied from `HOLD_PAGES` on while
 *    transactions wait: otherwise the WAL would grow as long as something is added to it.
 * 3. A long read prevents that SQLite starts over. Transactions do not wait for it: the next copy follows after `COPY_PAGES` more.
 * 4. If the thread fails, or is late, SQLite copies in the commits themselves, from `AUTOCHECKPOINT_PAGES` on: the setting of the connection that writes.
 * See docs/decisions/0580.
 */
import { rawSql } from "../../core/sql.ts";
import type { SqliteConnection } from "../../engines/sqlite-file/index.ts";
import type { WalPages } from "./checkpoint.worker.ts";
import { CheckpointThread } from "./checkpoint-thread.ts";

/** Pages in the WAL before a copy (32 MiB): a page that changes often is then copied once. */
const COPY_PAGES = 8192;
/** Pages in the WAL from which transactions wait for the end of a copy (96 MiB). Earlier, they would wait more often: for two syncs each time. */
const HOLD_PAGES = 3 * COPY_PAGES;
/** An older SQLite would take the look at the size of the WAL for a copy. */
const CAN_LOOK = isAtLeast(process.versions.sqlite ?? "", [3, 51]);
/** Pages in the WAL from which every commit copies (192 MiB; without the thread 32 MiB). */
export const AUTOCHECKPOINT_PAGES = CAN_LOOK ? 6 * COPY_PAGES : COPY_PAGES;
/** The size of the WAL is looked at once in so many commits: a look takes some microseconds. */
const COMMITS_PER_LOOK = 4;

export interface WalLimits {
  readonly copyPages: number;
  readonly holdPages: number;
}

const LIMITS: WalLimits = { copyPages: COPY_PAGES, holdPages: HOLD_PAGES };

const LOOK = rawSql("PRAGMA wal_checkpoint(NOOP)");

/** Runs work while no transaction runs. */
type WithoutTransactions = (work: () => Promise<unknown>) => Promise<unknown>;

export class Checkpoints {
  readonly #thread: CheckpointThread;
  readonly #writer: SqliteConnection;
  readonly #withoutTransactions: WithoutTransactions;
  readonly #limits: WalLimits;
  #commits = 0;
  #lastPages = 0;
  /** Pages in the WAL before the next copy. */
  #nextAt: number;
  #running: Promise<void> | null = null;

  /** `limits` are set by tests only. */
  constructor(
    path: string,
    writer: SqliteConnection,
    withoutTransactions: WithoutTransactions,
    limits: WalLimits = LIMITS,
  ) {
    this.#thread = new CheckpointThread(path);
    this.#writer = writer;
    this.#withoutTransactions = withoutTransactions;
    this.#limits = limits;
    this.#nextAt = limits.copyPages;
  }

  /** To be called after each commit. Never throws. */
  committed(): void {
    this.#commits += 1;
    if (!CAN_LOOK || this.#running !== null || this.#commits % COMMITS_PER_LOOK !== 0) return;
    const pages = this.#look();
    // It was started over.
    if (pages < this.#lastPages) this.#nextAt = this.#limits.copyPages;
    this.#lastPages = pages;
    if (pages < this.#nextAt) return;
    this.#running = this.#copy()
      // The next copy will have the pages, at the latest that of a commit.
      .catch(() => undefined)
      .finally(() => {
        this.#nextAt = this.#lastPages + this.#limits.copyPages;
        this.#running = null;
      });
  }

  /** Waits for a copy in progress. */
  async close(): Promise<void> {
    await this.#running;
    await this.#thread.close();
  }

  async #copy(): Promise<void> {
    const commits = this.#commits;
    await this.#thread.copy();
    if (this.#commits === commits || this.#lastPages < this.#limits.holdPages) return;
    await this.#withoutTransactions(() => this.#thread.copy());
  }

  #look(): number {
    try {
      return this.#writer.get<WalPages>(LOOK)?.log ?? 0;
    } catch {
      // Another program holds a lock; the next look follows.
      return this.#lastPages;
    }
  }
}

function isAtLeast(version: string, [major, minor]: readonly [number, number]): boolean {
  const [ownMajor = 0, ownMinor = 0] = version.split(".").map(Number);
  return ownMajor > major || (ownMajor === major && ownMinor >= minor);
}
