/** A program that writes rows into a database of SQLite until it is killed, and prints the number of each row when it is durable. Arguments: the path, the first number. */
import { writeSync } from "node:fs";
import { SqliteDatabase } from "../../packages/signalbox/src/database/sqlite/sqlite-database.ts";
import { rawSql, sql } from "../../packages/signalbox/src/core/sql.ts";

const WRITERS = 16;

const [path = "", first = "1"] = process.argv.slice(2);
const database = await SqliteDatabase.open(path, (error) => {
  throw error;
});
await database.run(rawSql("CREATE TABLE IF NOT EXISTS row (n INTEGER PRIMARY KEY, bytes BLOB)"));
let next = Number(first);

async function write(): Promise<never> {
  for (;;) {
    const n = next++;
    await database.run(sql`INSERT INTO row (n, bytes) VALUES (${n}, randomblob(120000))`);
    writeSync(1, `${n}\n`);
  }
}

await Promise.all(Array.from({ length: WRITERS }, write));
