/**
 * The process behind `read-only-query.ts`: one copy of a database, one statement, one answer.
 *
 * Its memory is bounded twice: by what one value may have, and by a thread that watches the whole process while SQLite holds up the main one.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { SqlValue } from "../../core/sql.ts";
import { SqliteConnection } from "../sqlite-file/index.ts";
import { BEGUN, type QueryAnswer, type QueryOrder } from "./read-only-query.ts";
import { mayRead } from "./statement-guard.ts";

/** Looks so often that little can be allocated between two looks. */
const WATCHMAN = `setInterval((maxBytes) => {
  if (process.memoryUsage.rss() > maxBytes) process.kill(process.pid, "SIGKILL");
}, 10, require("node:worker_threads").workerData);`;

process.once("message", (order) => {
  void run(order as QueryOrder).then((result) => process.send?.(result));
});

async function run(order: QueryOrder): Promise<QueryAnswer> {
  const { maxMemoryBytes } = order.limits;
  const watchman = new Worker(WATCHMAN, { eval: true, workerData: maxMemoryBytes });
  // Without the watchman nothing bounds the query: better no answer.
  watchman.on("error", () => process.kill(process.pid, "SIGKILL"));
  await once(watchman, "online");
  process.send?.(BEGUN);
  return answer(order);
}

function answer({ snapshot, text, limits }: QueryOrder): QueryAnswer {
  const connection = SqliteConnection.open(":memory:", { maxValueBytes: limits.maxBytes });
  try {
    connection.deserialize(toPlainFile(snapshot));
    // What a sort needs beyond its memory would go to files, which nothing counts.
    connection.exec("PRAGMA temp_store = MEMORY");
    let isRefused = false;
    connection.setAuthorizer((action, first, second) => {
      const isFine = mayRead(action, first, second);
      isRefused ||= !isFine;
      return isFine;
    });
    try {
      const statement = connection.prepare(text);
      const rest = text.slice(statement.text.length).replaceAll(/--[^\n]*|\/\*[\s\S]*?\*\/|[\s;]+/g, "");
      if (rest !== "") return { error: "one statement at a time" };
      return collect(statement.iterate([]), limits.maxRows, limits.maxBytes);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      return { error: isRefused ? "only reading is allowed here" : message };
    }
  } finally {
    connection.close();
  }
}

/** Rows until one limit is met; the row that does not fit any more is not read on. */
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

/** About what the row takes as JSON. */
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

/** A database in memory has no log: the header must not say that it has one (SQLite file format, section 1.3.3). */
function toPlainFile(bytes: Uint8Array): Uint8Array {
  bytes[18] = 1;
  bytes[19] = 1;
  return bytes;
}
