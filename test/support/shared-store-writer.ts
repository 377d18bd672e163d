/**
 * A process that writes numbers to instances whose history is in PostgreSQL, until it is killed. It prints each number when `sync` has resolved:
 * `<instance> <number>`. Arguments: connection string, folder, incarnation, number of instances. It ends with the code `STORAGE_AWAY` if PostgreSQL does not
 * answer in time, as on a machine that stood still.
 */
import { BASE_SCHEMA, RESERVED_NAMES } from "../../packages/signalbox/src/agents/index.ts";
import { rawSql, sql } from "../../packages/signalbox/src/core/sql.ts";
import {
  type InstanceDatabase,
  openSharedStore,
} from "../../packages/signalbox/src/engines/instance-store/index.ts";
import { isStorageAway, STORAGE_AWAY } from "./storage-away.ts";

const [url = "", folder = "", self = "", count = ""] = process.argv.slice(2);

function fail(error: unknown): never {
  throw error;
}

const store = await openSharedStore({
  folder,
  stores: [url],
  nodes: { self, isLeaseFresh: true, readLiving: () => Promise.resolve(new Set([self])) },
  baseSchema: BASE_SCHEMA,
  reservedNames: RESERVED_NAMES,
  maxCacheBytes: 2 ** 30,
  onFailure: fail,
  onStall: fail,
  onError: fail,
});

/** Numbers go on where the last process was killed. */
async function write(instance: number): Promise<never> {
  for (;;) {
    const database: InstanceDatabase = await store.open(`kill-${instance}`);
    for (let i = 0; i < 40; i++) {
      database.begin();
      database.run(rawSql("CREATE TABLE IF NOT EXISTS numbers (n INTEGER PRIMARY KEY, text TEXT)"));
      const last = database.get<{ n: number }>(sql`SELECT COALESCE(max(n), 0) AS n FROM numbers`)?.n ?? 0;
      database.run(sql`INSERT INTO numbers VALUES (${last + 1}, ${`number ${last + 1} `.repeat(200)})`);
      // Old rows leave, as in a list of the newest events.
      database.run(sql`UPDATE numbers SET text = '' WHERE n = ${last - 20}`);
      database.commit();
      await database.sync();
      process.stdout.write(`${instance} ${last + 1}\n`);
    }
    await database.close();
  }
}

process.on("uncaughtException", (error) => {
  if (isStorageAway(error)) process.exit(STORAGE_AWAY);
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
await Promise.all(Array.from({ length: Number(count) }, (_, i) => write(i)));
