/**
 * A process that migrates a database and is killed after a number of statements. Arguments: `folder file-or-url statements`
 */
import { migrate } from "../../packages/signalbox/src/database/migrate.ts";
import type { Database, Queryable } from "../../packages/signalbox/src/database/database.ts";
import { PostgresDatabase } from "../../packages/signalbox/src/database/postgres/postgres-database.ts";
import { SqliteDatabase } from "../../packages/signalbox/src/database/sqlite/sqlite-database.ts";

const [folder = "", place = "", statements = ""] = process.argv.slice(2);
const fail = (error: Error): never => {
  throw error;
};
const database: Database = place.startsWith("postgres:")
  ? await PostgresDatabase.open(place, fail)
  : await SqliteDatabase.open(place, fail);

let left = Number(statements);
const dying = (tx: Queryable): Queryable => ({
  all: (query) => tx.all(query),
  get: (query) => tx.get(query),
  async run(query) {
    const result = await tx.run(query);
    left -= 1;
    if (left === 0) process.kill(process.pid, "SIGKILL");
    return result;
  },
});
const dyingDatabase: Database = {
  engine: database.engine,
  problem: null,
  all: (query) => database.all(query),
  scan: (query, turn) => database.scan(query, turn),
  get: (query) => database.get(query),
  run: (query) => database.run(query),
  transaction: (work, options) => database.transaction((tx) => work(dying(tx)), options),
  close: () => database.close(),
};
await migrate(dyingDatabase, folder);
await database.close();
