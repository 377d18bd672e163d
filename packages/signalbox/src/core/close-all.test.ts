import { expect, it } from "vitest";
import { closeAll } from "./close-all.ts";

it("closes the last opened first, and everything, however many fail on the way", async () => {
  const closed: string[] = [];
  const closer = (name: string, failure?: Error) => async () => {
    closed.push(name);
    if (failure !== undefined) throw failure;
  };
  const full = new Error("the disk is full");
  await expect(
    closeAll([closer("folder"), closer("database"), closer("log", full), closer("area")]),
  ).rejects.toBe(full);
  expect(closed).toEqual(["area", "log", "database", "folder"]);
  await expect(closeAll([closer("a", full), closer("b", full)])).rejects.toBeInstanceOf(AggregateError);
  await expect(closeAll([closer("a")])).resolves.toBeUndefined();
});
