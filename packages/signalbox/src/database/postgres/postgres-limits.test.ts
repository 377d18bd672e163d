/** A PostgreSQL server that has no free connection or disk space, or does not respond. */
import { Client } from "pg";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { openTestPostgres, type TestPostgres } from "../../../../../test/support/test-postgres.ts";
import { rawSql } from "../../core/sql.ts";
import { PostgresDatabase, type PostgresDatabaseOptions } from "./postgres-database.ts";

let server: TestPostgres;
let admin: Client;
let opened = 0;

beforeAll(async () => {
  server = await openTestPostgres();
  admin = new Client({ connectionString: server.url });
  await admin.connect();
});
afterAll(async () => {
  await admin.end();
  await server.drop();
});

/** Opens a database with one table as a user with a limited number of connections, and a connection of the administrator. */
async function openLimited(connections: number, options: PostgresDatabaseOptions = {}) {
  opened += 1;
  const name = `limited${opened}`;
  await admin.query(`CREATE ROLE ${name} LOGIN CONNECTION LIMIT ${connections}`);
  await admin.query(`CREATE DATABASE ${name} OWNER ${name}`);
  const url = server.url.replace("postgres@", `${name}@`).replace(/postgres$/, name);
  const lost: string[] = [];
  const database = await PostgresDatabase.open(url, (error) => lost.push(error.message), {
    maxWaitMs: 1000,
    maxOutcomeWaitMs: 1000,
    heartbeatMs: 100,
    ...options,
  });
  // A statement may exceed the limits of a test if the machine pauses.
  const isCreated = () =>
    database.run(rawSql("CREATE TABLE IF NOT EXISTS t (x INTEGER)")).then(
      () => true,
      () => false,
    );
  await expect.poll(isCreated).toBe(true);
  const inside = new Client({ connectionString: server.url.replace(/postgres$/, name) });
  await inside.connect();
  onTestFinished(async () => {
    await server.thaw();
    await inside.end();
    await database.close();
  });
  return { url, admin: inside, database, lost };
}

const insert = (x: number) => rawSql(`INSERT INTO t VALUES (${x})`);
const count = rawSql("SELECT count(*) AS n FROM t");
const unavailable = { id: "storage_unavailable", status: 503 };

it("works with few connections", async () => {
  const { database } = await openLimited(3, { maxWaitMs: 10_000 });
  await Promise.all(Array.from({ length: 20 }, (_, i) => database.run(insert(i))));
  const reads = await Promise.all(Array.from({ length: 20 }, () => database.get(count)));
  expect(reads).toEqual(reads.map(() => ({ n: 20 })));
});

it("reports that the server has no free connection, and recovers", async () => {
  const { url, admin, database, lost } = await openLimited(3);
  await admin.query(
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
  await expect(database.run(insert(1))).rejects.toMatchObject(unavailable);
  await expect(database.get(count)).rejects.toMatchObject(unavailable);
  expect(database.problem).toBe("PostgreSQL has no connection left");
  for (const other of others) await other.end();
  await expect.poll(() => database.problem).toBeNull();
  await database.run(insert(2));
  expect([await database.get(count), lost]).toEqual([{ n: 1 }, []]);
});

it("reports that the disk of the server is full, and recovers", async () => {
  const { admin, database, lost } = await openLimited(10);
  await admin.query(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
    CREATE TRIGGER full_disk BEFORE INSERT ON t EXECUTE FUNCTION full_disk()`);
  await expect(database.run(insert(1))).rejects.toMatchObject({
    ...unavailable,
    message: expect.stringContaining("PostgreSQL's disk is full"),
  });
  expect(await database.get(count)).toEqual({ n: 0 });
  await admin.query("DROP TRIGGER full_disk ON t");
  await expect.poll(() => database.problem).toBeNull();
  await database.run(insert(2));
  expect([await database.get(count), lost]).toEqual([{ n: 1 }, []]);
});

it("fails all queries if the server hangs, and recovers", async () => {
  const { database, lost } = await openLimited(50);
  await Promise.all(Array.from({ length: 5 }, () => database.get(count)));
  await server.freeze();
  const pending = [database.run(insert(1)), database.get(count), database.get(count)];
  for (const failed of await Promise.allSettled(pending))
    expect(failed).toMatchObject({ status: "rejected", reason: unavailable });
  await expect(database.get(count)).rejects.toMatchObject(unavailable);
  expect(database.problem).toBe("PostgreSQL cannot be reached");
  await server.thaw();
  await expect.poll(() => database.problem).toBeNull();
  await database.run(insert(2));
  expect([await database.get(count), lost]).toEqual([{ n: 1 }, []]);
});

it("closes while the server hangs", async () => {
  const { database } = await openLimited(50);
  await server.freeze();
  await database.close();
});

it("aborts a statement after the time limit without affecting other sessions", async () => {
  const { admin, database, lost } = await openLimited(50, { maxStatementMs: 2000 });
  await admin.query("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE");
  await expect(database.run(insert(1))).rejects.toMatchObject(unavailable);
  await expect
    .poll(() => database.get(rawSql("SELECT 1 AS n")).catch(() => "a pause of the machine"))
    .toEqual({ n: 1 });
  await expect(
    database.transaction(
      async (tx) => {
        const slow = tx.get(rawSql("SELECT pg_sleep(2.5), 1 AS n"));
        return slow;
      },
      { scope: "slow", mayTakeLong: true },
    ),
  ).resolves.toMatchObject({ n: 1 });
  await admin.query("ROLLBACK");
  await expect.poll(() => database.problem).toBeNull();
  await database.run(insert(2));
  expect([await database.get(count), lost]).toEqual([{ n: 1 }, []]);
});

it("calls onLost if a write with unknown outcome was committed", async () => {
  const { admin, database, lost } = await openLimited(50);
  await admin.query(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM set_config('lock_timeout', '0', true); PERFORM pg_advisory_xact_lock(7); RETURN NEW; END $$;
    CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait();
    SELECT pg_advisory_lock(7)`);
  const write = database.run(insert(1));
  const waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
  await expect.poll(async () => (await admin.query(waiting)).rowCount).toBe(1);
  await server.freeze();
  await expect(write).rejects.toMatchObject({ id: "write_outcome_unknown" });
  await server.thaw();
  await admin.query("SELECT pg_advisory_unlock(7)");
  await expect
    .poll(() => lost)
    .toEqual([expect.stringContaining("a write with unknown outcome was committed")]);
  expect((await admin.query("SELECT x FROM t")).rows).toEqual([{ x: 1 }]);
});
