/**
 * Determines whether a transaction was committed if the connection broke during COMMIT.
 *
 * Each write transaction writes a unique mark into a row that no other transaction uses at the same time. The row then contains the mark if and only
 * if the transaction was committed. (`pg_xact_status` needs no row, but after a crash PostgreSQL may assign the id of a transaction that wrote
 * nothing durable to a later transaction, and would report the status of the wrong one.)
 *
 * Invariants:
 * 1. A row is used by one transaction at a time, and by the next one only when the outcome of the previous one is known.
 * 2. The rows exist before they are used: other sessions can neither see nor lock a row that was inserted by a running transaction.
 * See docs/decisions/0093.
 */
import type { Pool } from "pg";
import { isUnavailable } from "./postgres-failure.ts";

/** More than the number of connections, because transactions with unknown outcome keep their rows. */
const ROWS = 64;
/** The row is locked: the transaction has not ended. */
const LOCK_NOT_AVAILABLE = "55P03";

export const CREATE_MARKS = `CREATE TABLE IF NOT EXISTS signalbox_write (slot INTEGER PRIMARY KEY, mark TEXT NOT NULL);
  INSERT INTO signalbox_write (slot, mark) SELECT slot, '' FROM generate_series(0, ${ROWS - 1}) AS slot
  ON CONFLICT (slot) DO NOTHING`;

/** The mark of one transaction. `text` consists of digits and a dot. */
export interface WriteMark {
  readonly slot: number;
  readonly text: string;
}

export class WriteMarks {
  readonly #epoch: string;
  /** The row that was unused for the longest time is first: the server may not have ended the transaction of a broken connection. */
  readonly #free = Array.from({ length: ROWS }, (_, slot) => slot);
  #count = 0;

  constructor(epoch: string) {
    this.#epoch = epoch;
  }

  /** Returns null if too many outcomes are unknown. */
  take(): WriteMark | null {
    const slot = this.#free.shift();
    if (slot === undefined) return null;
    this.#count += 1;
    return { slot, text: `${this.#epoch}.${this.#count}` };
  }

  /** Called when the outcome of the transaction is known. */
  release({ slot }: WriteMark): void {
    this.#free.push(slot);
  }
}

/** Returns the statement that writes the mark, to be executed in the transaction. */
export function writeMark({ slot, text }: WriteMark): string {
  return `UPDATE signalbox_write SET mark = '${text}' WHERE slot = ${slot}`;
}

export async function readOutcome(
  pool: Pool,
  { slot, text }: WriteMark,
): Promise<"committed" | "aborted" | "pending"> {
  try {
    const { rows } = await pool.query<{ mark: string }>(
      "SELECT mark FROM signalbox_write WHERE slot = $1 FOR UPDATE NOWAIT",
      [slot],
    );
    return rows[0]?.mark === text ? "committed" : "aborted";
  } catch (error) {
    if (isUnavailable(error) || (error as { code?: string }).code === LOCK_NOT_AVAILABLE) return "pending";
    throw error;
  }
}
