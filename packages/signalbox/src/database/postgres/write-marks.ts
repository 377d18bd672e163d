/**
 * Determines whether a transaction was committed if the connection broke during COMMIT.
 *
 * Each write transaction writes a unique mark into a row that no other transaction uses at the same time. The row then contains the mark if and only
 * if the transaction was committed. (`pg_xact_status` needs no row, but after a crash PostgreSQL may assign the id of a transaction that wrote
 * nothing durable to a later transaction, and would report the status of the wrong one.)
 *
 * Invariants:
 * 1. A row is used by one transaction at a time, and by the next one only when the outcome of the previous one is known.
 * 2. The rows exist before they are used (`joinAs`): other sessions can neither see nor lock a row that was inserted by a running transaction.
 * 3. Each incarnation of a node has its own rows.
 * 4. A row never has an older mark than the last one whose commit was acknowledged, unless the server lost acknowledged commits.
 * See docs/decisions/0093.
 */
import type { Pool, PoolClient } from "pg";
import { isLocked, isStatementError, isUnavailable } from "../../engines/postgres-session/index.ts";
import { watchReplication } from "./replication-watch.ts";

/** Rows of one node. More than the number of connections, because transactions with unknown outcome keep their rows. */
export const MARK_COUNT = 64;

/** The mark of one transaction. `inc` and `text` consist of digits. */
export interface WriteMark {
  readonly inc: string;
  readonly slot: number;
  readonly text: string;
}

export class WriteMarks {
  readonly #inc: string;
  /** The row that was unused for the longest time is first: the server may not have ended the transaction of a broken connection. */
  readonly #free = Array.from({ length: MARK_COUNT }, (_, slot) => slot);
  /** By slot: the number of the last mark whose commit was acknowledged. */
  readonly #acknowledged = new Map<number, number>();
  #count = 0;

  constructor(inc: string) {
    this.#inc = inc;
  }

  /** Returns null if too many outcomes are unknown. */
  take(): WriteMark | null {
    const slot = this.#free.shift();
    if (slot === undefined) return null;
    this.#count += 1;
    return { inc: this.#inc, slot, text: String(this.#count) };
  }

  /** The server has reported the commit. */
  acknowledge({ slot, text }: WriteMark): void {
    this.#acknowledged.set(slot, Number(text));
  }

  /**
   * Call before the rows are read, and the returned function with the rows. It returns the number of acknowledged commits that the server does not
   * have any more, as far as the rows can tell: the newest of each row. Commits that were acknowledged meanwhile do not count: the rows may have been
   * read before.
   */
  beginLossCheck(): (stored: ReadonlyMap<number, string>) => number {
    const acknowledged = [...this.#acknowledged];
    return (stored) => acknowledged.filter(([slot, count]) => Number(stored.get(slot) ?? 0) < count).length;
  }

  /** Called when the outcome of the transaction is known. */
  release({ slot }: WriteMark): void {
    this.#free.push(slot);
  }
}

/** Returns the statement that writes the mark, to be executed in the transaction. */
export function writeMark({ inc, slot, text }: WriteMark): string {
  return `UPDATE signalbox_node_write SET mark = '${text}' WHERE inc = ${inc} AND slot = ${slot}`;
}

/** The read locks the row, so its own commit waits for a synchronous standby: a committed mark is then replicated, too. */
export async function readOutcome(
  pool: Pool,
  { inc, slot, text }: WriteMark,
): Promise<"committed" | "aborted" | "pending"> {
  let client: PoolClient | undefined;
  try {
    client = await pool.connect();
    const replication = watchReplication(client);
    const { rows } = await client.query<{ mark: string }>(
      "SELECT mark FROM signalbox_node_write WHERE inc = $1 AND slot = $2 FOR UPDATE NOWAIT",
      [inc, slot],
    );
    replication.end();
    client.release();
    if (!replication.isConfirmed()) return "pending";
    return rows[0]?.mark === text ? "committed" : "aborted";
  } catch (error) {
    client?.release(!isStatementError(error));
    // If the row is locked, the transaction has not ended.
    if (isUnavailable(error) || isLocked(error)) return "pending";
    throw error;
  }
}
