/**
 * The plain engine as the oracle of the journal engine: any sequence of operations gives the same content in both. At a crash each engine may keep
 * commits that were not synced; whatever it keeps is a prefix of the commits, and includes all synced ones.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import { rawSql, sql } from "../../core/sql.ts";
import { commitRow, readRows, useInstanceDisks } from "./instance-disks-fixture.ts";
import type { InstanceDatabase, InstanceStore } from "./instance-store.ts";
import type { InstanceStoreEngine } from "./open-instance-store.ts";

const disks = useInstanceDisks();

const OPERATIONS = [
  "put",
  "put",
  "put",
  "rewrite",
  "rollback",
  "sync",
  "flush",
  "close",
  "destroy",
  "crash",
] as const;
const step = fc.record({ operation: fc.constantFrom(...OPERATIONS), instance: fc.nat(2) });
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** One engine, and what a caller knows of each of its instances. */
class Subject {
  readonly #engine: InstanceStoreEngine;
  #disk: string;
  #store: InstanceStore | null = null;
  readonly #open = new Map<number, InstanceDatabase>();
  /** Rows that must survive a crash. */
  readonly synced = new Map<number, number[]>();
  #crashes = 0;

  constructor(engine: InstanceStoreEngine, run: number) {
    this.#engine = engine;
    this.#disk = `${engine}-${run}`;
  }

  async start(): Promise<void> {
    // Small segments are started, checkpointed and removed all the time.
    this.#store = await disks.start(this.#engine, this.#disk, { segmentBytes: 8192 });
  }

  async database(instance: number): Promise<InstanceDatabase> {
    let database = this.#open.get(instance);
    if (database === undefined) {
      database = await this.#store?.open(String(instance));
      if (database === undefined) throw new Error("the store is not started");
      this.#open.set(instance, database);
    }
    return database;
  }

  async sync(instance: number): Promise<void> {
    const database = await this.database(instance);
    await database.sync();
    this.synced.set(instance, readRows(database));
  }

  async close(instance: number): Promise<void> {
    const database = await this.database(instance);
    const rows = readRows(database);
    await database.close();
    this.#open.delete(instance);
    this.synced.set(instance, rows);
  }

  async destroy(instance: number): Promise<void> {
    await this.close(instance);
    await this.#store?.destroy(String(instance));
    this.synced.delete(instance);
  }

  /** Continues with what a kill leaves on the disk. */
  async crash(): Promise<void> {
    this.#crashes += 1;
    const next = `${this.#disk.split(".")[0]}.${this.#crashes}`;
    disks.copy(this.#disk, next);
    await this.stop();
    this.#disk = next;
    await this.start();
  }

  /** Ends the former process, on files that are not read again. */
  async stop(): Promise<void> {
    for (const database of this.#open.values()) await database.close();
    this.#open.clear();
    await this.#store?.close();
  }
}

/** Performs the step and returns what a caller observes. */
async function perform(subject: Subject, { operation, instance }: Step, value: number): Promise<unknown> {
  switch (operation) {
    case "put":
      commitRow(await subject.database(instance), value);
      break;
    case "rewrite": {
      // Changes many pages, grows and shrinks the file.
      const database = await subject.database(instance);
      database.begin();
      database.run(rawSql("CREATE TABLE IF NOT EXISTS big (text TEXT)"));
      database.run(rawSql("DELETE FROM big"));
      database.run(sql`INSERT INTO big VALUES (${"x".repeat(((value * 7919) % 40) * 500)})`);
      database.commit();
      break;
    }
    case "rollback": {
      const database = await subject.database(instance);
      database.begin();
      database.run(rawSql("CREATE TABLE IF NOT EXISTS t (x INTEGER)"));
      database.run(sql`INSERT INTO t VALUES (-1)`);
      database.rollback();
      break;
    }
    case "sync":
      await subject.sync(instance);
      break;
    case "flush":
      await (await subject.database(instance)).flush();
      break;
    case "close":
      await subject.close(instance);
      break;
    case "destroy":
      await subject.destroy(instance);
      break;
    case "crash":
      return null;
  }
  const database = await subject.database(instance);
  return { rows: readRows(database), check: database.get(rawSql("PRAGMA integrity_check")) };
}

it("both engines give the same content after any sequence of operations", async () => {
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      run += 1;
      const journal = new Subject("journal", run);
      const plain = new Subject("plain", run);
      for (const subject of [journal, plain]) await subject.start();
      for (const [value, current] of steps.entries()) {
        const observed = await perform(journal, current, value);
        expect(observed).toEqual(await perform(plain, current, value));
        if (current.operation === "crash") for (const subject of [journal, plain]) await crash(subject);
      }
      for (const subject of [journal, plain]) await subject.stop();
    }),
    { numRuns: 25 },
  );
});

/** Crashes, checks what is left, and reduces each instance to its synced rows, so that both engines continue with the same content. */
async function crash(subject: Subject): Promise<void> {
  const committed = new Map<number, number[]>();
  for (const instance of [0, 1, 2]) committed.set(instance, readRows(await subject.database(instance)));
  await subject.crash();
  for (const [instance, rows] of committed) {
    const database = await subject.database(instance);
    const kept = readRows(database);
    const synced = subject.synced.get(instance) ?? [];
    expect(kept).toEqual(rows.slice(0, kept.length));
    expect(kept.slice(0, synced.length)).toEqual(synced);
    expect(database.get(rawSql("PRAGMA integrity_check"))).toEqual({ integrity_check: "ok" });
    database.begin();
    database.run(rawSql("CREATE TABLE IF NOT EXISTS t (x INTEGER)"));
    database.run(sql`DELETE FROM t WHERE rowid > ${synced.length}`);
    database.commit();
    // Durable, or another crash could bring the deleted rows back.
    await subject.sync(instance);
  }
}
