import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it } from "vitest";
import { userPlace, withoutOwnFrames } from "./own-frames.ts";

const OWN = join(import.meta.dirname, "../agents/instance/live-instance.ts");
const OWN_URL = pathToFileURL(OWN).href;

it("frames of this package and of Node become one line with their number", () => {
  const stack = [
    "TypeError: no amount",
    "    at Orders.pay (/home/ann/shop/agents.ts:12:9)",
    `    at LiveInstance.invoke (${OWN_URL}:40:11)`,
    `    at ${OWN}:9:2`,
    "    at process.processTicksAndRejections (node:internal/process/task_queues:105:5)",
    "    at async Promise.all (index 0)",
  ];
  expect(withoutOwnFrames(stack.join("\n"))).toBe(
    [...stack.slice(0, 2), "    … 4 frames of Signalbox"].join("\n"),
  );
});

it("causes, messages of several lines and frames between own ones stay", () => {
  const stack = [
    "Error: first line",
    "second line",
    `    at wrap (${OWN}:1:1)`,
    "    at query (/home/ann/shop/node_modules/db/index.js:3:4)",
    `    at run (${OWN}:2:2)`,
    "caused by Error: refused",
    "    at connect (file:///home/ann/shop/db.ts:5:6)",
  ];
  const one = "    … 1 frame of Signalbox";
  expect(withoutOwnFrames(stack.join("\n")).split("\n")).toEqual([
    ...stack.slice(0, 2),
    one,
    stack[3],
    one,
    ...stack.slice(5),
  ]);
});

it("a stack with own frames only, and a text without frames, stay as they are", () => {
  const own = `Error: a defect\n    at run (${OWN}:2:2)\n    at node:internal/main:1:1`;
  for (const text of [own, "just a text", "", "Error: x\n    at evil (((("])
    expect(withoutOwnFrames(text)).toBe(text);
});

it("the place of the user's code is that of the first frame which is neither of this package nor of Node", () => {
  const stack = [
    "Error: no env",
    "    at node:internal/modules/cjs/loader:1554:14",
    `    at load (${OWN}:2:2)`,
    "    at parse (/home/ann/shop/node_modules/db/index.js:3:4)",
    "    at <anonymous> (file:///home/ann/my%20shop/notes.ts:3:9)",
    "    at Object.<anonymous> (/home/ann/agents.ts:1:1)",
  ];
  expect(userPlace(stack.join("\n"))).toBe("/home/ann/my shop/notes.ts:3:9");
  expect(userPlace(stack.slice(0, 4).join("\n"))).toBeUndefined();
  expect(userPlace("Error: x\n    at file:///%zz:1:1")).toBe("file:///%zz:1:1");
});
