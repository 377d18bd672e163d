/**
 * How a writer learns whether its transaction took place when the connection broke while it was committing.
 *
 * Each write transaction leaves a mark of its own in a row that no other one uses meanwhile. Afterwards the row has the mark if, and only if, the
 * transaction has committed. (PostgreSQL's `pg_xact_status` would cost no row, but a crash makes it forget numbers of transactions that had
 * written nothing durable, and it gives them to later ones: it would then speak of another transaction.)
 *
 * Invariants:
 * 1. A row is used by one transaction at a time, and by the next one only when the outcome of the one before is known.
 * 2. Rows exist before they are used: one that a transaction had created itself could not be seen, nor waited for, while it runs.
 */
import type { Pool } from "pg";
import { isUnavailable } from "./postgres-failure.ts";

/** More than connections, for those whose outcome is open. */
const ROWS = 64;
/** Another transaction holds the row: the one that is asked for has not ended. */
const LOCK_NOT_AVAILABLE = "55P03";

export const CREATE_MARKS = `CREATE TABLE IF NOT EXISTS signalbox_write (slot INTEGER PRIMARY KEY, mark TEXT NOT NULL);
  INSERT INTO signalbox_write (slot, mark) SELECT slot, '' FROM generate_series(0, ${ROWS - 1}) AS slot
  ON CONFLICT (slot) DO NOTHING`;

/** Of one transaction; made of digits and a dot. */
export interface WriteMark {
  readonly slot: number;
  readonly text: string;
}

export class WriteMarks {
  readonly #epoch: string;
  /** Longest unused first: the server may still be ending the transaction of a connection that broke. */
  readonly #free = Array.from({ length: ROWS }, (_, slot) => slot);
  #count = 0;

  constructor(epoch: string) {
    this.#epoch = epoch;
  }

  /** Null when too many outcomes are open. */
  take(): WriteMark | null {
    const slot = this.#free.shift();
    if (slot === undefined) return null;
    this.#count += 1;
    return { slot, text: `${this.#epoch}.${this.#count}` };
  }

  /** The transaction has ended, and how is known. */
  release({ slot }: WriteMark): void {
    this.#free.push(slot);
  }
}

/** To be run inside the transaction. */
export function leaveMark({ slot, text }: WriteMark): string {
  return `UPDATE signalbox_write SET mark = '${text}' WHERE slot = ${slot}`;
}

export async function readOutcome(
  pool: Pool,
  { slot, text }: WriteMark,
): Promise<"committed" | "aborted" | "later"> {
  try {
    const { rows } = await pool.query<{ mark: string }>(
      "SELECT mark FROM signalbox_write WHERE slot = $1 FOR UPDATE NOWAIT",
      [slot],
    );
    return rows[0]?.mark === text ? "committed" : "aborted";
  } catch (error) {
    if (isUnavailable(error) || (error as { code?: string }).code === LOCK_NOT_AVAILABLE) return "later";
    throw error;
  }
}
