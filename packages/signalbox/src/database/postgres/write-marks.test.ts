import { expect, it } from "vitest";
import { type WriteMark, WriteMarks } from "./write-marks.ts";

function commit(marks: WriteMarks): WriteMark {
  const mark = marks.take();
  if (mark === null) throw new Error("there is no free row");
  marks.acknowledge(mark);
  marks.release(mark);
  return mark;
}

it("counts commits that the server has lost", () => {
  const marks = new WriteMarks("1");
  const first = commit(marks);
  const second = commit(marks);
  const countLost = marks.beginLossCheck();
  expect(countLost(new Map([first, second].map(({ slot, text }) => [slot, text])))).toBe(0);
  expect(countLost(new Map([[first.slot, first.text]]))).toBe(1);
  expect(countLost(new Map())).toBe(2);
});

it("a commit that was acknowledged while the rows were read is not lost", () => {
  const marks = new WriteMarks("1");
  const first = commit(marks);
  const countLost = marks.beginLossCheck();
  const stored = new Map([[first.slot, first.text]]);
  commit(marks);
  expect(countLost(stored)).toBe(0);
});
