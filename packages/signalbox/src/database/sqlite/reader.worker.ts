/** A thread of `ReaderThreads`: runs the statements that it is sent, one after the other. */
import { parentPort, workerData } from "node:worker_threads";
import { SqlQuery, type SqlValue } from "../../core/sql.ts";
import { explainFailure, SqliteConnection } from "../../engines/sqlite-file/index.ts";

export interface ReadQuestion {
  readonly id: number;
  readonly parts: readonly string[];
  readonly values: readonly SqlValue[];
}

export type ReadAnswer =
  | { readonly kind: "rows"; readonly id: number; readonly rows: unknown[] }
  /** `isTemporary`: the lock of another program, for example. */
  | { readonly kind: "failed"; readonly id: number; readonly message: string; readonly isTemporary: boolean };

if (parentPort === null) throw new Error("this module runs in a worker thread");
const port = parentPort;
const connection = SqliteConnection.open(workerData as string, { readOnly: true });
// Sorts of many rows stay in memory.
connection.exec("PRAGMA temp_store = MEMORY;");

function answer({ id, parts, values }: ReadQuestion): ReadAnswer {
  try {
    return { kind: "rows", id, rows: connection.all(new SqlQuery(parts, values)) };
  } catch (error) {
    const explained = explainFailure(error);
    const message = explained instanceof Error ? explained.message : String(explained);
    return { kind: "failed", id, message, isTemporary: explained !== error };
  }
}

port.on("message", (question: ReadQuestion) => port.postMessage(answer(question)));
