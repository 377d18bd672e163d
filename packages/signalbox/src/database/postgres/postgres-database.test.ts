import { Client, Pool } from "pg";
import { expect, it, onTestFinished } from "vitest";
import { openTestPostgres } from "../../../../../test/support/test-postgres.ts";
import { rawSql } from "../../core/sql.ts";
import { PostgresDatabase, type PostgresDatabaseOptions } from "./postgres-database.ts";
import { readOutcome } from "./write-marks.ts";
import { describeDatabase } from "../database-contract.ts";

const rethrow = (error: Error): never => {
  throw error;
};

describeDatabase("PostgreSQL", async () => {
  const { url, drop, stop, start } = await openTestPostgres();
  const database = await PostgresDatabase.open(url, rethrow, { maxWaitMs: 1000 });
  return {
    database,
    async lose() {
      await stop("fast");
      return start;
    },
    cleanUp: drop,
  };
});

/** Opens a database with one table, and a connection of an administrator. `lost` collects the errors of `onLost`. */
async function openWithAdmin(options: PostgresDatabaseOptions = {}) {
  const server = await openTestPostgres();
  const lost: string[] = [];
  const database = await PostgresDatabase.open(server.url, (error) => lost.push(error.message), {
    maxWaitMs: 1000,
    maxOutcomeWaitMs: 1000,
    ...options,
  });
  await database.run(rawSql("CREATE TABLE t (x INTEGER)"));
  const admin = new Client({ connectionString: server.url });
  // One test kills the server.
  admin.on("error", () => undefined);
  await admin.connect();
  onTestFinished(async () => {
    await admin.end().catch(() => undefined);
    await database.close();
    await server.drop();
  });
  const rows = async () => (await admin.query("SELECT x FROM t")).rowCount;
  const cut = (name: string) =>
    admin.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", [name]);
  return { server, database, lost, admin, rows, cut };
}

it("refuses a database that another process uses, without changing it", async () => {
  const { server, database, admin } = await openWithAdmin();
  const nodes = async () => (await admin.query("SELECT inc FROM signalbox_node")).rows as unknown;
  const before = await nodes();
  await expect(PostgresDatabase.open(server.url, rethrow)).rejects.toThrow(
    "in use by another Signalbox process",
  );
  expect(await nodes()).toEqual(before);
  await database.close();
  const second = await PostgresDatabase.open(server.url, rethrow);
  await second.close();
});

it("recovers after all sessions were terminated, also during a transaction", async () => {
  const { database, lost, rows, cut } = await openWithAdmin();
  const cutInTheMiddle = database.transaction(async (tx) => {
    await tx.run(rawSql("INSERT INTO t VALUES (1)"));
    for (const name of ["signalbox", "signalbox node"]) await cut(name);
    await tx.run(rawSql("INSERT INTO t VALUES (2)"));
  });
  await expect(cutInTheMiddle).rejects.toMatchObject({ id: "storage_unavailable" });
  await database.run(rawSql("INSERT INTO t VALUES (3)"));
  expect([await rows(), lost]).toEqual([1, []]);
  await expect.poll(() => database.problem).toBeNull();
});

it("writes nothing and calls onLost after another process owned the database", async () => {
  const { database, lost, admin, rows } = await openWithAdmin();
  await admin.query("UPDATE signalbox_node SET state = 'dead'");
  await expect(database.run(rawSql("INSERT INTO t VALUES (1)"))).rejects.toMatchObject({ status: 503 });
  await expect.poll(() => lost.length).toBe(1);
  expect(await rows()).toBe(0);
  expect(lost[0]).toContain("has taken over the PostgreSQL database");
});

it("calls onLost if another process took the database while the session was lost", async () => {
  const { lost, admin, cut } = await openWithAdmin();
  await admin.query("UPDATE signalbox_node SET state = 'dead'");
  await cut("signalbox node");
  await expect.poll(() => lost.length).toBe(1);
});

/** Blocks commits until the administrator releases a lock. Resolves to a function that waits for a blocked commit. */
async function holdCommits(admin: Client): Promise<() => Promise<void>> {
  await admin.query(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM set_config('lock_timeout', '0', true); PERFORM pg_advisory_xact_lock(7); RETURN NEW; END $$;
    CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait();
    SELECT pg_advisory_lock(7)`);
  const waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
  return async () => {
    await expect.poll(async () => (await admin.query(waiting)).rowCount).toBe(1);
  };
}

const idOf = (write: Promise<unknown>) =>
  write.then(
    () => "written",
    (error: { id: string }) => error.id,
  );

it("determines the outcome of a commit whose connection broke, and runs the transaction again if it had none", async () => {
  const { database, admin, rows, cut } = await openWithAdmin();
  const whenCommitting = await holdCommits(admin);
  let runs = 0;
  const write = database.transaction(async (tx) => {
    runs += 1;
    await tx.run(rawSql("INSERT INTO t VALUES (1)"));
  });
  const outcome = idOf(write);
  await whenCommitting();
  await cut("signalbox");
  await expect.poll(() => runs).toBeGreaterThan(1);
  await admin.query("SELECT pg_advisory_unlock(7)");
  expect([await outcome, await rows()]).toEqual(["written", 1]);
});

it("reports an unknown outcome if the server stays unavailable, and continues if the write was not committed", async () => {
  const { server, database, lost, admin } = await openWithAdmin();
  const whenCommitting = await holdCommits(admin);
  const outcome = idOf(database.run(rawSql("INSERT INTO t VALUES (1)")));
  await whenCommitting();
  await server.stop("kill");
  expect(await outcome).toBe("write_outcome_unknown");
  await server.start();
  await expect.poll(() => database.problem).toBeNull();
  await database.run(rawSql("DROP TRIGGER wait ON t"));
  await database.run(rawSql("INSERT INTO t VALUES (2)"));
  expect(await database.all(rawSql("SELECT x FROM t"))).toEqual([{ x: 2 }]);
  expect(lost).toEqual([]);
});

it("a process that stops waits for no server that is away", async () => {
  const { server, database } = await openWithAdmin({ maxWaitMs: 3_600_000 });
  await server.stop("fast");
  const waiting = idOf(database.run(rawSql("INSERT INTO t VALUES (1)")));
  await expect.poll(() => database.session.isHeld).toBe(false);
  database.hurry();
  expect(await waiting).toBe("storage_unavailable");
  await database.close();
});

it("finds the mark of a committed transaction and no other", async () => {
  const { server, database, admin } = await openWithAdmin();
  await database.run(rawSql("INSERT INTO t VALUES (1)"));
  const { rows } = await admin.query<{ inc: string; slot: number; mark: string }>(
    "SELECT inc::text, slot, mark FROM signalbox_node_write WHERE mark <> ''",
  );
  const [last = { inc: "0", slot: 0, mark: "" }] = rows;
  const { inc, slot } = last;
  const pool = new Pool({ connectionString: server.url });
  onTestFinished(() => pool.end());
  expect(await readOutcome(pool, { inc, slot, text: last.mark })).toBe("committed");
  expect(await readOutcome(pool, { inc, slot, text: `${last.mark}0` })).toBe("aborted");
  await admin.query("BEGIN; SELECT 1 FROM signalbox_node_write FOR UPDATE");
  expect(await readOutcome(pool, { inc, slot, text: last.mark })).toBe("pending");
  await admin.query("ROLLBACK");
});

it("reports in one line that the server cannot be reached, after the wait", async () => {
  const waited: string[] = [];
  const options = { startWaitMs: 300, onWait: (error: Error) => waited.push(error.message) };
  await expect(PostgresDatabase.open("postgres://u:p@127.0.0.1:1/x", rethrow, options)).rejects.toThrow(
    /^cannot connect to PostgreSQL: /,
  );
  expect(waited).toEqual([expect.stringContaining("ECONNREFUSED")]);
});
