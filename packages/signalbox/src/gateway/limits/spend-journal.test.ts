/** What is in the journal's file at which moment: a process can be killed after any of them. */
import { mkdtempSync, rmSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { NamedBucket } from "./rule-buckets.ts";
import { type SlotAmount, SpendJournal } from "./spend-journal.ts";

it("has a reservation before the request can be sent, and the settled amount instead when the turn has ended", async () => {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-spend-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const open = () =>
    new SpendJournal({
      folder,
      newId: "j",
      onError: (error) => {
        throw error;
      },
    });
  const inFile = () =>
    open()
      .recover(null)
      .map(({ amount }) => amount);
  const bucket = { journalNumber: 0, owner: { accountId: "a", key: "k" }, name: "r" };
  const amounts = (amount: number): SlotAmount[] => [
    { bucket: bucket as unknown as NamedBucket, slot: 0, end: 1, amount },
  ];
  const journal = open();
  journal.begin([]);
  journal.reserved(1, amounts(18));
  expect(inFile()).toEqual([18]);
  journal.settled(1, amounts(7));
  expect(inFile()).toEqual([18]);
  await setImmediate();
  expect(inFile()).toEqual([7]);
  // A reservation brings along what is settled.
  journal.reserved(2, amounts(5));
  journal.settled(2, amounts(3));
  journal.reserved(3, amounts(1));
  expect(inFile()).toEqual([7, 3, 1]);
  journal.close();
});
