import { expect, it } from "vitest";
import { SignalboxError } from "@signalbox/protocol";
import { rawSql } from "../core/sql.ts";
import type { Database, Queryable } from "./database.ts";
import { ALL_KEYS, LocalSettings, toStoredKeys } from "./shared-settings.ts";

const nothing: Queryable = {
  all: () => Promise.resolve([]),
  get: () => Promise.resolve(undefined),
  run: () => Promise.resolve({ changes: 0 }),
};
/** Runs transactions, and stores nothing. */
const database: Database = {
  ...nothing,
  engine: "sqlite",
  problem: null,
  scan: () => Promise.resolve([]),
  transaction: (work) => work(nothing),
  close: () => Promise.resolve(),
};

function openSettings() {
  const settings = new LocalSettings(database);
  const reads: (readonly string[] | null)[] = [];
  const store = { fail: false };
  settings.register("token", {
    async reload(keys) {
      if (store.fail) throw new SignalboxError("storage_unavailable");
      reads.push(keys);
    },
  });
  return { settings, reads, store };
}

it("reads the changed rows after a write, and none after a failed one", async () => {
  const { settings, reads } = openSettings();
  await settings.load("token");
  await settings.write("token", async (tx, changed) => {
    await tx.run(rawSql("x"));
    changed("a");
    changed("b");
    changed("a");
  });
  const failed = settings.write("token", async (_, changed) => {
    changed("c");
    throw new Error("refused");
  });
  await expect(failed).rejects.toThrow("refused");
  expect(reads).toEqual([null, ["a", "b"]]);
});

it("reads all rows in place of very many", async () => {
  const { settings, reads } = openSettings();
  await settings.write("token", async (_, changed) => {
    for (let i = 0; i < 1001; i++) changed(String(i));
  });
  await settings.write("token", async (_, changed) => changed(ALL_KEYS));
  expect(reads).toEqual([null, null]);
  expect(toStoredKeys(new Set(["a"]))).toEqual(["a"]);
  expect(toStoredKeys(new Set(Array.from({ length: 1001 }, (_, i) => String(i))))).toEqual([ALL_KEYS]);
});

it("a write whose rows cannot be read has an unknown outcome, and everything is read as soon as possible", async () => {
  const { settings, reads, store } = openSettings();
  store.fail = true;
  const written = settings.write("token", async (_, changed) => changed("a"));
  await expect(written).rejects.toMatchObject({ id: "write_outcome_unknown" });
  store.fail = false;
  await expect.poll(() => reads).toEqual([null]);
});
