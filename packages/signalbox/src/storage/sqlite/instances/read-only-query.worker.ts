/** The process behind `read-only-query.ts`: one copy of a database, one statement, one answer. */
import { SqliteConnection } from "../connection.ts";
import type { QueryAnswer, QueryOrder } from "./read-only-query.ts";
import { mayRead } from "./statement-guard.ts";

process.once("message", (order) => {
  process.send?.(answer(order as QueryOrder));
});

function answer({ snapshot, text, maxRows }: QueryOrder): QueryAnswer {
  const connection = SqliteConnection.open(":memory:");
  try {
    connection.deserialize(toPlainFile(snapshot));
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
      const rows = statement.take([], maxRows + 1);
      return { rows: rows.slice(0, maxRows).map((row) => ({ ...row })), isCut: rows.length > maxRows };
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      return { error: isRefused ? "only reading is allowed here" : message };
    }
  } finally {
    connection.close();
  }
}

/** A database in memory has no log: the header must not say that it has one (SQLite file format, section 1.3.3). */
function toPlainFile(bytes: Uint8Array): Uint8Array {
  bytes[18] = 1;
  bytes[19] = 1;
  return bytes;
}
