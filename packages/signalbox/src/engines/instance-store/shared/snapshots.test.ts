import { mkdtempSync, openSync, closeSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { HeldInstance } from "./held-instance.ts";
import type { History, SweptRange } from "./history.ts";
import { GRACE_MS, Snapshots } from "./snapshots.ts";

function heldIn(history: History, i: number): HeldInstance {
  const place = { name: `i-${i}`, key: String(i), id: i, node: "1", history };
  return new HeldInstance({ ...place, epoch: 1, claimSeq: 1, mark: 0, snapSeq: 0, partBytes: 0 });
}

/** A store without a server. */
function fakeHistory(sweep: (ranges: readonly SweptRange[]) => Promise<void>): History {
  const fake: Pick<History, "snapshot" | "sweep"> = { snapshot: () => Promise.resolve(0), sweep };
  return fake as History;
}

it("keeps records for the whole time of grace", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const swept: number[] = [];
  const history = fakeHistory((ranges) => Promise.resolve(void swept.push(...ranges.map(({ id }) => id))));
  const snapshots = new Snapshots({ onError: () => undefined, figures: { compactions: 0 } });
  onTestFinished(() => snapshots.close());
  await snapshots.write(heldIn(history, 7), { main: 0, wal: 0, walEnd: 0 }, 4096);
  for (const ms of [0, GRACE_MS - 1]) {
    vi.advanceTimersByTime(ms);
    await snapshots.sweep();
    expect(swept).toEqual([]);
  }
  vi.advanceTimersByTime(1);
  await snapshots.sweep();
  expect(swept).toEqual([7]);
});

it("deletes all records that are due in one pass, and those of a store that fails later", async () => {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-snapshots-"));
  const file = openSync(join(folder, "empty"), "w+");
  onTestFinished(() => {
    closeSync(file);
    rmSync(folder, { recursive: true });
  });
  const swept: number[] = [];
  let isUp = false;
  const good = fakeHistory((ranges) => Promise.resolve(void swept.push(...ranges.map(({ id }) => id))));
  const bad = fakeHistory((ranges) =>
    isUp
      ? Promise.resolve(void swept.push(...ranges.map(({ id }) => id)))
      : Promise.reject(new Error("down")),
  );
  const snapshots = new Snapshots({ onError: () => undefined, figures: { compactions: 0 }, graceMs: 0 });
  onTestFinished(() => snapshots.close());
  const files = { main: file, wal: file, walEnd: 0 };
  // More than one statement deletes.
  const ids = Array.from({ length: 700 }, (_, i) => i);
  for (const i of [1000, 1001]) await snapshots.write(heldIn(bad, i), files, 4096);
  for (const i of ids) await snapshots.write(heldIn(good, i), files, 4096);
  await expect(snapshots.sweep()).rejects.toThrow("down");
  expect(swept).toEqual(ids);
  isUp = true;
  await snapshots.sweep();
  expect(swept).toEqual([...ids, 1000, 1001]);
});

it("of an instance that is fenced are not written, and end when it is fenced in the middle", async () => {
  const failures: unknown[] = [];
  const written: unknown[] = [];
  const fake: Pick<History, "snapshot" | "sweep"> = {
    async snapshot({ parts }) {
      for await (const part of parts) written.push(part);
      return 0;
    },
    sweep: () => Promise.resolve(),
  };
  const snapshots = new Snapshots({ onError: (error) => failures.push(error), figures: { compactions: 0 } });
  onTestFinished(() => snapshots.close());
  const folder = mkdtempSync(join(tmpdir(), "signalbox-snapshots-"));
  const file = openSync(join(folder, "empty"), "w+");
  onTestFinished(() => {
    closeSync(file);
    rmSync(folder, { recursive: true });
  });
  const files = { main: file, wal: file, walEnd: 0 };
  const [held, fenced, later] = [1, 2, 3].map((i) => {
    const instance = heldIn(fake as History, i);
    instance.databasePages = 1;
    return instance;
  });
  if (held === undefined || fenced === undefined || later === undefined) throw new Error("unreachable");
  await snapshots.write(held, files, 4096);
  expect(written).toHaveLength(1);
  fenced.fence("taken");
  await snapshots.write(fenced, files, 4096);
  const writing = snapshots.write(later, files, 4096);
  later.fence("lost");
  await writing;
  expect([written.length, failures]).toEqual([1, []]);
});
