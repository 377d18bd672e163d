/**
 * The process of `read-only-query.ts`: one copy of a database, one statement, one answer.
 *
 * Its memory is limited twice: by the maximum size of a value, and by a thread that watches the process while SQLite blocks the main thread.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { SqlValue } from "../../core/sql.ts";
import { SqliteConnection } from "../sqlite-file/index.ts";
import { type QueryAnswer, type QueryRequest, STARTED } from "./read-only-query.ts";
import { hasStatement, mayRead } from "./statement-guard.ts";

/** Checks often enough that little can be allocated between two checks. */
const WATCHDOG = `setInterval((maxBytes) => {
  if (process.memoryUsage.rss() > maxBytes) process.kill(process.pid, "SIGKILL");
}, 10, require("node:worker_threads").workerData);`;

process.once("message", (request) => {
  void run(request as QueryRequest).then((result) => process.send?.(result));
});

async function run(request: QueryRequest): Promise<QueryAnswer> {
  const { maxMemoryBytes } = request.limits;
  const watchdog = new Worker(WATCHDOG, { eval: true, workerData: maxMemoryBytes });
  // Without the watchdog the memory of the query is not limited.
  watchdog.on("error", () => process.kill(process.pid, "SIGKILL"));
  await once(watchdog, "online");
  process.send?.(STARTED);
  return answer(request);
}

function answer({ snapshot, text, limits }: QueryRequest): QueryAnswer {
  const connection = SqliteConnection.open(":memory:", {
    maxValueBytes: limits.maxBytes,
    takesQuotedText: true,
  });
  try {
    connection.deserialize(withoutWal(snapshot));
    // Otherwise sorting would use temporary files, which are not limited.
    connection.exec("PRAGMA temp_store = MEMORY");
    let isRefused = false;
    connection.setAuthorizer((action, first, second) => {
      const isFine = mayRead(action, first, second);
      isRefused ||= !isFine;
      return isFine;
    });
    try {
      const statement = connection.prepare(text);
      if (hasStatement(text.slice(statement.text.length))) return { error: "one statement at a time" };
      return collect(statement.iterate([]), limits.maxRows, limits.maxBytes);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      return { error: isRefused ? "only reading is allowed here" : message };
    }
  } finally {
    connection.close();
  }
}

/** Reads rows up to the limits. */
function collect(source: Iterable<Record<string, SqlValue>>, maxRows: number, maxBytes: number): QueryAnswer {
  const rows: Record<string, SqlValue>[] = [];
  let bytes = 0;
  for (const row of source) {
    if (rows.length === maxRows) return { rows, isCut: true };
    bytes += sizeOf(row);
    if (bytes > maxBytes) {
      return rows.length === 0 ? { error: `a row has more than ${maxBytes} bytes` } : { rows, isCut: true };
    }
    rows.push({ ...row });
  }
  return { rows, isCut: false };
}

/** The approximate size of the row as JSON. */
function sizeOf(row: Readonly<Record<string, SqlValue>>): number {
  let bytes = 2;
  for (const [name, value] of Object.entries(row)) {
    bytes += name.length + 4;
    if (typeof value === "string") bytes += Buffer.byteLength(value);
    else if (value instanceof Uint8Array) bytes += Math.ceil(value.byteLength / 3) * 4;
    else bytes += 8;
  }
  return bytes;
}

/** Clears WAL mode in the header: a database in memory has no WAL (SQLite file format, section 1.3.3). */
function withoutWal(bytes: Uint8Array): Uint8Array {
  bytes[18] = 1;
  bytes[19] = 1;
  return bytes;
}
