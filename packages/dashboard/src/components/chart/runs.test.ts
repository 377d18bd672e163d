import { expect, it } from "vitest";
import { runsOf } from "./runs.ts";

it("ends a line where a time has no value, and keeps single points", () => {
  const runs = runsOf([null, 3, 4, null, null, 7, null, 0]);
  expect(runs.map((run) => run.map(({ index, value }) => [index, value]))).toEqual([
    [
      [1, 3],
      [2, 4],
    ],
    [[5, 7]],
    [[7, 0]],
  ]);
  expect(runsOf([null, null])).toEqual([]);
});
