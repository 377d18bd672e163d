import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { WalSync } from "./wal-sync.ts";

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-wal-"));
  path = join(folder, "x.db");
  writeFileSync(`${path}-wal`, "");
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true, force: true });
});

/** Replaces syncs by promises that the test resolves. */
async function holdSyncs(): Promise<{ finish: (() => void)[]; fail: ((error: Error) => void)[] }> {
  const probe = await open(`${path}-wal`, "r+");
  const prototype = Object.getPrototypeOf(probe) as FileHandle;
  await probe.close();
  const held = { finish: [] as (() => void)[], fail: [] as ((error: Error) => void)[] };
  vi.spyOn(prototype, "datasync").mockImplementation(
    () =>
      new Promise((resolve, reject) => {
        held.finish.push(resolve);
        held.fail.push(reject);
      }),
  );
  return held;
}

it("resolves a call only after a sync that started after the call; calls share a sync", async () => {
  const held = await holdSyncs();
  const sync = await WalSync.open(path, vi.fn());
  const done: string[] = [];
  const first = sync.sync().then(() => done.push("first"));
  const second = sync.sync().then(() => done.push("second"));
  const third = sync.sync().then(() => done.push("third"));
  expect(held.finish).toHaveLength(1);
  held.finish[0]?.();
  await first;
  expect(done).toEqual(["first"]);
  await expect.poll(() => held.finish).toHaveLength(2);
  held.finish[1]?.();
  await Promise.all([second, third]);
  expect(done).toEqual(["first", "second", "third"]);
  expect(held.finish).toHaveLength(2);
  await sync.close();
});

it("fails all pending and later calls after a failed sync, does not retry, and reports the failure once", async () => {
  const held = await holdSyncs();
  const onFailure = vi.fn();
  const sync = await WalSync.open(path, onFailure);
  const first = sync.sync();
  const second = sync.sync();
  held.fail[0]?.(new Error("EIO"));
  await expect(first).rejects.toThrow("fdatasync of the WAL failed");
  await expect(second).rejects.toThrow("fdatasync of the WAL failed");
  await expect(sync.sync()).rejects.toThrow("fdatasync of the WAL failed");
  expect(held.finish).toHaveLength(1);
  expect(onFailure).toHaveBeenCalledTimes(1);
  await sync.close();
});
