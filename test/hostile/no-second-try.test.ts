import { expect, it } from "vitest";

it("a test in this folder that fails is not run again", ({ task }) => {
  expect(task.retry ?? 0).toBe(0);
});
