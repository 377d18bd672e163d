/** The ledger on a real instance database, with a clock that the tests set. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type InstanceDatabase,
  type InstanceStore,
  openInstanceStore,
} from "../../engines/instance-store/index.ts";
import { sql } from "../../core/sql.ts";
import { OutputGate } from "../../engines/turn-runtime/output-gate.ts";
import { Transactions } from "../../engines/turn-runtime/transactions.ts";
import { BASE_SCHEMA, RESERVED_NAMES } from "./base-schema.ts";
import { DeliveryLedger } from "./delivery-ledger.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
let folder: string;
let files: InstanceStore;
let database: InstanceDatabase;
let transactions: Transactions;
let ledger: DeliveryLedger;
let now: number;

/** Opens the database; the second time it exists already. */
async function open(): Promise<void> {
  database = await files.open("x");
  const gate = new OutputGate({ sync: () => database.sync(), onIdle: () => undefined });
  transactions = new Transactions(database, gate, fail);
  ledger = new DeliveryLedger(database, transactions, { now: () => now });
}

async function reopen(): Promise<void> {
  transactions.finish();
  await database.close();
  await open();
}

function fail(error: Error): never {
  throw error;
}

const entries = () => database.get<{ n: number }>(sql`SELECT count(*) AS n FROM _signalbox_delivery`)?.n ?? 0;

beforeEach(async () => {
  now = Date.parse("2026-01-01T00:00:00Z");
  folder = await mkdtemp(join(tmpdir(), "signalbox-ledger-"));
  files = await openInstanceStore("journal", {
    folder: join(folder, "agents"),
    baseSchema: BASE_SCHEMA,
    reservedNames: RESERVED_NAMES,
    segmentBytes: 2 ** 20,
    onFailure: fail,
    onStall: fail,
  });
  await open();
});
afterEach(async () => {
  transactions.finish();
  await database.close();
  await files.close();
  await rm(folder, { recursive: true, force: true });
});

describe("the ledger of deliveries", () => {
  it("accepts each delivery once, through either method, also after the instance was reloaded", async () => {
    expect([ledger.has("a"), ledger.addIfNew("a"), ledger.addIfNew("a"), ledger.has("a")]).toEqual([
      false,
      true,
      false,
      true,
    ]);
    await reopen();
    expect([ledger.has("a"), ledger.addIfNew("a"), ledger.has("b"), ledger.addIfNew("b")]).toEqual([
      true,
      false,
      false,
      true,
    ]);
  });

  it("remembers a delivery for at least thirty days, whether or not the instance was reloaded", async () => {
    for (let day = 0; day < 60; day += 7) {
      const key = `of day ${day}`;
      const end = now + 30 * DAY_MS;
      ledger.addIfNew(key);
      for (let at = now; at <= end; at += 6 * DAY_MS) {
        const today = now;
        now = at;
        expect([key, ledger.has(key), ledger.addIfNew(key)]).toEqual([key, true, false]);
        if (day % 2 === 0) await reopen();
        now = today;
      }
      now += 7 * DAY_MS;
    }
  });

  it("deletes entries that are older than two periods", () => {
    for (let i = 0; i < 1000; i++) ledger.addIfNew(`old-${i}`);
    now += 61 * DAY_MS;
    expect(ledger.has("old-1")).toBe(false);
    for (let i = 0; i < 2000; i++) ledger.addIfNew(`new-${i}`);
    expect(entries()).toBe(2000);
    expect([ledger.has("new-0"), ledger.has("new-1999")]).toEqual([true, true]);
  });

  it("loses an entry by a rollback of its transaction, or by its removal", () => {
    ledger.addIfNew("a");
    transactions.finish();
    ledger.addIfNew("b");
    ledger.remove("b");
    expect([ledger.has("a"), ledger.has("b"), ledger.addIfNew("b")]).toEqual([true, false, true]);
    database.rollback();
    expect([ledger.has("a"), ledger.has("b")]).toEqual([true, false]);
  });

  it("recognises earlier deliveries after the clock was set back by a period, whether or not the instance was reloaded", async () => {
    const period = 30 * DAY_MS;
    now = Math.ceil(now / period) * period + 1;
    ledger.addIfNew("a");
    now -= 2;
    expect([ledger.has("a"), ledger.addIfNew("a")]).toEqual([true, false]);
    await reopen();
    expect([ledger.has("a"), ledger.addIfNew("a")]).toEqual([true, false]);
  });

  it("follows the clock again after it was years ahead", async () => {
    now += 2000 * DAY_MS;
    ledger.addIfNew("of the future");
    now -= 2000 * DAY_MS;
    await reopen();
    ledger.addIfNew("a");
    expect(database.all(sql`SELECT DISTINCT period FROM _signalbox_delivery`)).toHaveLength(2);
    now += 61 * DAY_MS;
    expect(ledger.has("a")).toBe(false);
  });

  it("removes an entry even if its period has ended since", () => {
    const period = 30 * DAY_MS;
    now = Math.floor(now / period) * period + period - 1;
    ledger.addIfNew("a");
    now += 1;
    ledger.remove("a");
    expect(ledger.has("a")).toBe(false);
  });

  it("distinguishes ids of any length", () => {
    const long = "x".repeat(5000);
    expect([ledger.addIfNew(`${long}1`), ledger.addIfNew(`${long}2`), ledger.addIfNew(`${long}1`)]).toEqual([
      true,
      true,
      false,
    ]);
  });
});
