/** A segment ends before the next one is created (invariant 3 of `journal.ts`): a reader would take the older of two open segments for damaged. */
import { expect, it, vi } from "vitest";
import { commitRow, readRows, useInstanceDisks, writeRow } from "../instance-disks-fixture.ts";
import { Segment } from "./segment.ts";

const disks = useInstanceDisks();

it("a record that is written while the next segment is being created goes into that segment", async () => {
  // Every flush creates a segment.
  const files = disks.open("one", 1);
  const x = await files.open("x");
  const y = await files.open("y");
  const { create } = Segment;
  let created = 0;
  vi.spyOn(Segment, "create").mockImplementation((options) => {
    created += 1;
    queueMicrotask(() => {
      commitRow(y, created);
      void y.flush();
    });
    return create(options);
  });
  for (let i = 0; i < 5; i++) await writeRow(x, i);
  await y.sync();
  vi.restoreAllMocks();
  expect(created).toBeGreaterThan(2);

  disks.copy("one", "killed");
  const next = disks.open("killed");
  for (const [name, rows] of [
    ["x", 5],
    ["y", created],
  ] as const) {
    const database = await next.open(name);
    expect(readRows(database)).toHaveLength(rows);
    await database.close();
  }
  await x.close();
  await y.close();
});
