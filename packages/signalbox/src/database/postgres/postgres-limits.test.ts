/** A PostgreSQL that is there, and has no connection, no room or no answer to give. */
import { Client } from "pg";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { openTestPostgres, type TestPostgres } from "../../../../../test/support/test-postgres.ts";
import { rawSql } from "../../core/sql.ts";
import { PostgresDatabase, type PostgresDatabaseOptions } from "./postgres-database.ts";

let server: TestPostgres;
let hand: Client;
let opened = 0;

beforeAll(async () => {
  server = await openTestPostgres();
  hand = new Client({ connectionString: server.url });
  await hand.connect();
});
afterAll(async () => {
  await hand.end();
  await server.drop();
});

/** A database with one table, of an ordinary user who may have `connections`, and the administrator's hand in it. */
async function openLimited(connections: number, options: PostgresDatabaseOptions = {}) {
  opened += 1;
  const name = `limited${opened}`;
  await hand.query(`CREATE ROLE ${name} LOGIN CONNECTION LIMIT ${connections}`);
  await hand.query(`CREATE DATABASE ${name} OWNER ${name}`);
  const url = server.url.replace("postgres@", `${name}@`).replace(/postgres$/, name);
  const lost: string[] = [];
  const database = await PostgresDatabase.open(url, (error) => lost.push(error.message), {
    maxWaitMs: 1000,
    maxOutcomeWaitMs: 1000,
    beatMs: 100,
    ...options,
  });
  await database.run(rawSql("CREATE TABLE t (x INTEGER)"));
  const inside = new Client({ connectionString: server.url.replace(/postgres$/, name) });
  await inside.connect();
  onTestFinished(async () => {
    await server.thaw();
    await inside.end();
    await database.close();
  });
  return { url, hand: inside, database, lost };
}

const insert = (x: number) => rawSql(`INSERT INTO t VALUES (${x})`);
const count = rawSql("SELECT count(*) AS n FROM t");
const withoutRoom = { id: "storage_unavailable", status: 503 };

it("shares the connections there are, however few", async () => {
  const { database } = await openLimited(3, { maxWaitMs: 10_000 });
  await Promise.all(Array.from({ length: 20 }, (_, i) => database.run(insert(i))));
  const reads = await Promise.all(Array.from({ length: 20 }, () => database.get(count)));
  expect(reads).toEqual(reads.map(() => ({ n: 20 })));
});

it("says that the server has no connection left, and goes on when it has", async () => {
  const { url, hand, database, lost } = await openLimited(3);
  await hand.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'signalbox' AND datname = current_database()",
  );
  const others: Client[] = [];
  await expect
    .poll(async () => {
      const other = new Client({ connectionString: url });
      await other.connect();
      return others.push(other);
    })
    .toBe(2);
  await expect(database.run(insert(1))).rejects.toMatchObject(withoutRoom);
  await expect(database.get(count)).rejects.toMatchObject(withoutRoom);
  expect(database.problem).toBe("PostgreSQL has no connection left");
  for (const other of others) await other.end();
  await expect.poll(() => database.problem).toBeNull();
  await database.run(insert(2));
  expect([await database.get(count), lost]).toEqual([{ n: 1 }, []]);
});

it("says that the server's disk is full, and goes on when it has room", async () => {
  const { hand, database, lost } = await openLimited(10);
  await hand.query(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
    CREATE TRIGGER full_disk BEFORE INSERT ON t EXECUTE FUNCTION full_disk()`);
  await expect(database.run(insert(1))).rejects.toMatchObject({
    ...withoutRoom,
    message: expect.stringContaining("PostgreSQL's disk is full"),
  });
  expect(await database.get(count)).toEqual({ n: 0 });
  await hand.query("DROP TRIGGER full_disk ON t");
  await expect.poll(() => database.problem).toBeNull();
  await database.run(insert(2));
  expect([await database.get(count), lost]).toEqual([{ n: 1 }, []]);
});

it("lets nobody wait for a server that hangs, and goes on when it does", async () => {
  const { database, lost } = await openLimited(50);
  await Promise.all(Array.from({ length: 5 }, () => database.get(count)));
  await server.freeze();
  const cutOff = [database.run(insert(1)), database.get(count), database.get(count)];
  for (const failed of await Promise.allSettled(cutOff))
    expect(failed).toMatchObject({ status: "rejected", reason: withoutRoom });
  await expect(database.get(count)).rejects.toMatchObject(withoutRoom);
  expect(database.problem).toBe("PostgreSQL cannot be reached");
  await server.thaw();
  await expect.poll(() => database.problem).toBeNull();
  await database.run(insert(2));
  expect([await database.get(count), lost]).toEqual([{ n: 1 }, []]);
});

it("can be closed while the server hangs", async () => {
  const { database } = await openLimited(50);
  await server.freeze();
  await database.close();
});

it("gives up a statement that a single session does not answer, and leaves the others alone", async () => {
  const { hand, database, lost } = await openLimited(50, { maxStatementMs: 300 });
  await hand.query("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE");
  await expect(database.run(insert(1))).rejects.toMatchObject(withoutRoom);
  expect(await database.get(rawSql("SELECT 1 AS n"))).toEqual({ n: 1 });
  await expect(
    database.transaction(
      async (tx) => {
        const slow = tx.get(rawSql("SELECT pg_sleep(0.5), 1 AS n"));
        return slow;
      },
      { scope: "slow", mayTakeLong: true },
    ),
  ).resolves.toMatchObject({ n: 1 });
  await hand.query("ROLLBACK");
  await expect.poll(() => database.problem).toBeNull();
  await database.run(insert(2));
  expect([await database.get(count), lost]).toEqual([{ n: 1 }, []]);
});

it("asks to be started anew when a write took place whose outcome it had called unknown", async () => {
  const { hand, database, lost } = await openLimited(50);
  await hand.query(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NEW; END $$;
    CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait();
    SELECT pg_advisory_lock(7)`);
  const write = database.run(insert(1));
  const waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
  await expect.poll(async () => (await hand.query(waiting)).rowCount).toBe(1);
  await server.freeze();
  await expect(write).rejects.toMatchObject({ id: "write_outcome_unknown" });
  await server.thaw();
  await hand.query("SELECT pg_advisory_unlock(7)");
  await expect
    .poll(() => lost)
    .toEqual([expect.stringContaining("a write took place whose outcome was unknown")]);
  expect((await hand.query("SELECT x FROM t")).rows).toEqual([{ x: 1 }]);
});
