import { expect, it } from "vitest";
import { LinkLog } from "./link-log.ts";

function open() {
  const lines: unknown[] = [];
  const clock = { time: 0, now: () => clock.time };
  const log = (fields: object, text?: string) => void lines.push([text?.replace("cluster: ", ""), fields]);
  const links = new LinkLog({ info: log, warn: log } as never, clock);
  return { lines, clock, links };
}

it("logs a problem of a node once a minute, with the number of repetitions, and again when it changes", () => {
  const { lines, clock, links } = open();
  for (let i = 0; i < 100; i++) links.problem("7", "refused");
  clock.time = 60_000;
  links.problem("7", "refused");
  links.problem("7", "wrong secret");
  links.problem("8", "refused");
  expect(lines).toEqual([
    ["cannot link to a node", { peer: "7", reason: "refused" }],
    ["cannot link to a node", { peer: "7", reason: "refused", repeated: 99 }],
    ["cannot link to a node", { peer: "7", reason: "wrong secret" }],
    ["cannot link to a node", { peer: "8", reason: "refused" }],
  ]);
});

it("strangers share one line a minute, whatever they send", () => {
  const { lines, links } = open();
  for (let i = 0; i < 100; i++) links.problem(null, `reason ${i}`);
  expect(lines).toEqual([["cannot link to a node", { peer: null, reason: "reason 0" }]]);
});

it("a problem after a link is a new one", () => {
  const { lines, links } = open();
  links.problem("7", "refused");
  links.up("7");
  links.problem("7", "refused");
  expect(lines).toHaveLength(3);
});
