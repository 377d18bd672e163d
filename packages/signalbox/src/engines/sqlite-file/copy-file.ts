/** Copies a database in WAL mode that other connections of any process use, as of one moment. */
import { chmodSync, existsSync } from "node:fs";
import { rawSql } from "../../core/sql.ts";
import { SqliteConnection } from "./connection.ts";

const FIRST_READ = rawSql("SELECT count(*) AS count FROM sqlite_schema");

/** False if there is no file. The WAL of the source grows meanwhile: no frame is overwritten that the copy still needs. */
export async function copySqliteFile(from: string, to: string): Promise<boolean> {
  if (!existsSync(from)) return false;
  const connection = SqliteConnection.open(from, { readOnly: true });
  try {
    connection.exec("BEGIN");
    connection.get(FIRST_READ);
    await connection.copyTo(to);
    chmodSync(to, 0o600);
    return true;
  } finally {
    connection.close();
  }
}
