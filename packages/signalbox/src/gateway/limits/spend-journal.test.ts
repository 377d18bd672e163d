/** What is in the journal's file at which moment: a process can be killed after any of them. */
import fs, { mkdtempSync, rmSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { setImmediate } from "node:timers/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import type { NamedBucket } from "./rule-buckets.ts";
import { type SlotAmount, SpendJournal } from "./spend-journal.ts";

const bucket = { journalNumber: 0, owner: { accountId: "a", key: "k" }, name: "r" };
const amounts = (amount: number): SlotAmount[] => [
  { bucket: bucket as unknown as NamedBucket, slot: 0, end: 1, amount },
];

function openFolder(onError: (error: unknown) => void) {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-spend-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  bucket.journalNumber = 0;
  const open = () => new SpendJournal({ folder, newId: "j", onError });
  const inFile = () =>
    open()
      .recover(null)
      .map(({ amount }) => amount);
  return { open, inFile };
}

it("has a reservation before the request may be sent, and the settled amount instead when the turn has ended", async () => {
  const { open, inFile } = openFolder((error) => {
    throw error;
  });
  const journal = open();
  journal.begin([]);
  journal.reserved(1, amounts(18));
  expect(inFile()).toEqual([]);
  const written = await new Promise((resolve) => journal.whenWritten(() => resolve(inFile())));
  expect(written).toEqual([18]);
  journal.settled(1, amounts(7));
  expect(inFile()).toEqual([18]);
  await setImmediate();
  expect(inFile()).toEqual([7]);
  // A reservation brings along what is settled.
  journal.reserved(2, amounts(5));
  journal.settled(2, amounts(3));
  journal.reserved(3, amounts(1));
  journal.flush();
  expect(inFile()).toEqual([7, 3, 1]);
  journal.close();
});

it("a call that fails when its reservation is written does not keep others waiting", async () => {
  const errors: unknown[] = [];
  const { open } = openFolder((error) => errors.push(error));
  const journal = open();
  journal.begin([]);
  journal.reserved(1, amounts(18));
  journal.whenWritten(() => {
    throw new Error("this call");
  });
  await new Promise<void>((resolve) => journal.whenWritten(resolve));
  expect(errors).toMatchObject([{ message: "this call" }]);
  journal.close();
});

it.each([0, 1, 5, 20, 40])(
  "a disk that takes %i bytes and is full then loses no line, and none is there twice",
  (room) => {
    const errors: unknown[] = [];
    const { open, inFile } = openFolder((error) => errors.push(error));
    const journal = open();
    journal.begin([]);
    journal.settled(1, amounts(7));
    const { writeSync } = fs;
    let left = room;
    const full = vi.spyOn(fs, "writeSync").mockImplementation(((
      fd: number,
      bytes: Uint8Array,
      at: number,
      length: number,
    ) => {
      if (left === 0) throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
      const count = Math.min(left, length);
      left -= count;
      return writeSync(fd, bytes, at, count);
    }) as typeof fs.writeSync);
    syncBuiltinESMExports();
    try {
      journal.reserved(2, amounts(5));
      journal.flush();
    } finally {
      full.mockRestore();
      syncBuiltinESMExports();
    }
    expect([errors.length, journal.isFull]).toEqual([1, true]);
    journal.settled(3, amounts(3));
    journal.flush();
    expect(inFile()).toEqual([7, 3, 5]);
    expect(open().recover(journal.position)).toMatchObject([{ amount: 5 }]);
    journal.close();
  },
);
