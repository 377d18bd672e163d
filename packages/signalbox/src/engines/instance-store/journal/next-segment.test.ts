/** One file of the journal ends before the next one begins: of two that are written to, a reader takes the older one for damaged. */
import { expect, it, vi } from "vitest";
import { commitRow, readRows, useInstanceDisks, writeRow } from "../instance-disks.ts";
import { Segment } from "./segment.ts";

const disks = useInstanceDisks();

it("something that is written at once while the next file is being made goes into that file", async () => {
  // Every flush begins a file of its own.
  const files = disks.open("one", 1);
  const x = await files.open("x");
  const y = await files.open("y");
  const { create } = Segment;
  let made = 0;
  vi.spyOn(Segment, "create").mockImplementation((options) => {
    made += 1;
    queueMicrotask(() => {
      commitRow(y, made);
      y.flush();
    });
    return create(options);
  });
  for (let i = 0; i < 5; i++) await writeRow(x, i);
  await y.sync();
  vi.restoreAllMocks();
  expect(made).toBeGreaterThan(2);

  disks.copy("one", "killed");
  const next = disks.open("killed");
  for (const [name, rows] of [
    ["x", 5],
    ["y", made],
  ] as const) {
    const database = await next.open(name);
    expect(readRows(database)).toHaveLength(rows);
    await database.close();
  }
  await x.close();
  await y.close();
});
