/** The thread of `CheckpointThread`: copies the WAL into the database when it is asked to. */
import { parentPort, workerData } from "node:worker_threads";
import { rawSql } from "../../core/sql.ts";
import { SqliteConnection } from "../../engines/sqlite-file/index.ts";

/** Pages in the WAL, and how many of them the database file has. Both are -1 if the file has no WAL. */
export interface WalPages {
  readonly log: number;
  readonly checkpointed: number;
}

export type CopyAnswer =
  | { readonly kind: "copied"; readonly pages: WalPages }
  | { readonly kind: "failed"; readonly message: string };

if (parentPort === null) throw new Error("this module runs in a worker thread");
const port = parentPort;
const connection = SqliteConnection.open(workerData as string);
// As the connection that writes: SQLite syncs the WAL before a copy, and the database after it.
connection.exec("PRAGMA synchronous = NORMAL;");
/** It copies what no reader prevents, and waits for no lock. */
const COPY = rawSql("PRAGMA wal_checkpoint(PASSIVE)");

function copy(): CopyAnswer {
  try {
    const { log, checkpointed } = connection.get<WalPages>(COPY) ?? { log: -1, checkpointed: -1 };
    return { kind: "copied", pages: { log, checkpointed } };
  } catch (error) {
    return { kind: "failed", message: error instanceof Error ? error.message : String(error) };
  }
}

port.on("message", () => port.postMessage(copy()));
