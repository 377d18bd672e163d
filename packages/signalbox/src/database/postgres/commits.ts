/**
 * Ends transactions, and finds out what became of a commit whose answer did not arrive.
 *
 * Invariants:
 * 1. A commit is reported only if the server has flushed it and, where it waits for a synchronous standby, the standby has it as well. PostgreSQL
 *    answers COMMIT with a mere warning if that wait was cancelled. Then the outcome is read, and the read waits for the standby itself.
 * 2. `write_outcome_unknown` is the only error after which the write may have been committed. Its outcome is then followed in the background: if
 *    it was committed, `onOutOfDate` is called, since the data in memory does not include it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { SignalboxError } from "@signalbox/protocol";
import type { Pool, PoolClient } from "pg";
import { fullJitterDelay } from "../../core/retry.ts";
import { isStatementError } from "../../engines/postgres-session/index.ts";
import { rollBack } from "./postgres-pool.ts";
import { watchReplication } from "./replication-watch.ts";
import { readOutcome, type WriteMark, type WriteMarks } from "./write-marks.ts";

/** How long a writer waits for the outcome of its commit. */
const MAX_OUTCOME_WAIT_MS = 10_000;
const RETRY = { baseDelayMs: 50, maxDelayMs: 500 };
/** Interval at which an unknown outcome is read. */
const SETTLE_MS = 1000;

export interface CommitsOptions {
  readonly pool: Pool;
  /** For tests. */
  readonly maxOutcomeWaitMs?: number | undefined;
  readonly onOutOfDate: () => void;
  /** The background reads end. */
  readonly isClosed: () => boolean;
}

export class Commits {
  readonly #options: CommitsOptions;

  constructor(options: CommitsOptions) {
    this.#options = options;
  }

  /** Ends the use of the connection in any case. Keeps the mark if the outcome is unknown, otherwise releases it. */
  async commit(client: PoolClient, marks: WriteMarks, mark: WriteMark): Promise<void> {
    let isUnknown = false;
    try {
      await this.#commit(client, marks, mark);
      marks.acknowledge(mark);
    } catch (error) {
      isUnknown = error instanceof SignalboxError && error.id === "write_outcome_unknown";
      throw error;
    } finally {
      if (!isUnknown) marks.release(mark);
    }
  }

  async #commit(client: PoolClient, marks: WriteMarks, mark: WriteMark): Promise<void> {
    const replication = watchReplication(client);
    try {
      const { command } = await client.query("COMMIT");
      replication.end();
      client.release();
      // The server rolls back if an earlier statement failed and the callback ignored the error.
      if (command === "ROLLBACK") throw new RolledBackError();
      if (replication.isConfirmed()) return;
    } catch (error) {
      if (error instanceof RolledBackError) throw error;
      replication.end();
      if (isStatementError(error)) {
        await rollBack(client);
        throw error;
      }
      client.release(true);
      if (!(await this.#hasCommitted(marks, mark))) throw error;
      return;
    }
    // Aborted is impossible: the server has answered COMMIT. A server that has lost it meanwhile is no reason to report success.
    if (!(await this.#hasCommitted(marks, mark))) throw new SignalboxError("write_outcome_unknown");
  }

  /** Throws `write_outcome_unknown` if the server does not report the outcome in time. */
  async #hasCommitted(marks: WriteMarks, mark: WriteMark): Promise<boolean> {
    const { pool, maxOutcomeWaitMs = MAX_OUTCOME_WAIT_MS } = this.#options;
    const deadline = performance.now() + maxOutcomeWaitMs;
    for (let attempt = 1; performance.now() < deadline; attempt++) {
      const outcome = await readOutcome(pool, mark);
      if (outcome !== "pending") return outcome === "committed";
      await sleep(fullJitterDelay(attempt, RETRY));
    }
    void this.#settle(marks, mark);
    throw new SignalboxError("write_outcome_unknown");
  }

  async #settle(marks: WriteMarks, mark: WriteMark): Promise<void> {
    const { pool, isClosed, onOutOfDate } = this.#options;
    let outcome: Awaited<ReturnType<typeof readOutcome>> = "pending";
    while (outcome === "pending" && !isClosed()) {
      await sleep(SETTLE_MS, undefined, { ref: false });
      // An unexpected error leaves the outcome as unknown as it was.
      outcome = await readOutcome(pool, mark).catch(() => "pending" as const);
    }
    marks.release(mark);
    if (outcome === "committed" && !isClosed()) onOutOfDate();
  }
}

class RolledBackError extends Error {
  constructor() {
    super("the transaction was rolled back because one of its statements failed");
  }
}
