import { sep } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { mayContinue } from "./judge-uncaught.ts";
import { createLogger } from "./logger.ts";
import { createRegistry } from "./metrics.ts";
import { UncaughtErrors } from "./uncaught-errors.ts";

const FOLDER = ["", "opt", "signalbox", "src", ""].join(sep);
const own = {
  folder: FOLDER,
  isTransient: (error: unknown) => (error as { code?: string }).code === "ENOSPC",
  isInTurn: () => false,
};

const OWN = `at Mailbox.#drain (file://${FOLDER}engines/turn-runtime/turn.ts:10:3)`;
const STORAGE = `at Journal.#flush (file://${FOLDER}engines/instance-store/journal/journal.ts:10:3)`;
const AGENT = "at Timeout._onTimeout (file:///home/me/my-agents.ts:3:9)";
const LIBRARY = "at Receiver.emit (/home/me/node_modules/ws/lib/receiver.js:5:5)";
const DISPATCH = "at WebSocket.dispatchEvent (node:internal/event_target:789:26)";
const NODE = "at process.processTimers (node:internal/timers:529:7)";

function errorWith(...frames: string[]): Error {
  const error = new Error("x");
  error.stack = `Error: x\n${frames.map((frame) => `    ${frame}`).join("\n")}`;
  return error;
}

it.each([
  ["an agent's timer", [AGENT, NODE], true],
  ["server code called by an agent's timer", [STORAGE, OWN, AGENT, NODE], true],
  ["a socket without a listener", [NODE], true],
  ["a library by itself", [LIBRARY, NODE], true],
  ["a callback of the server", [OWN, NODE], false],
  ["a callback of the server called by a library", [STORAGE, OWN, LIBRARY, NODE], false],
  ["an agent's code called by a callback of the server", [AGENT, OWN, NODE], false],
  ["an agent's listener of an event of the server", [AGENT, DISPATCH, OWN, NODE], true],
  ["a listener of the server", [OWN, DISPATCH, OWN, NODE], false],
])("decides about an exception by its outermost frame: %s", (_what, frames, expected) => {
  expect(mayContinue("exception", errorWith(...frames), own)).toBe(expected);
});

it.each([
  ["a timer of a library that an agent uses", [OWN, LIBRARY, NODE], true],
  ["a callback of the server", [LIBRARY, OWN, NODE], false],
])("decides about an exception in an agent's turn: %s", (_what, frames, expected) => {
  expect(mayContinue("exception", errorWith(...frames), { ...own, isInTurn: () => true })).toBe(expected);
});

it.each([
  ["an agent's promise", [AGENT], true],
  ["a promise of the server", [OWN, `at async ${AGENT.slice(3)}`], true],
  ["storage", [STORAGE, OWN], false],
  ["no frame", [], true],
])("decides about a rejection by its innermost frame: %s", (_what, frames, expected) => {
  expect(mayContinue("rejection", errorWith(...frames), own)).toBe(expected);
});

it("continues after transient storage errors and thrown values that are not errors", () => {
  expect(mayContinue("rejection", Object.assign(errorWith(STORAGE), { code: "ENOSPC" }), own)).toBe(true);
  expect(mayContinue("exception", "text", own)).toBe(true);
  expect(mayContinue("rejection", undefined, own)).toBe(true);
});

let lines: { level: string; msg: string; err?: { message: string }; suppressed?: number }[];
let interruptions: unknown[];
let uncaught: UncaughtErrors;

beforeEach(() => {
  vi.useFakeTimers();
  lines = [];
  interruptions = [];
  uncaught = new UncaughtErrors({
    logger: createLogger({
      level: "info",
      isPretty: false,
      destination: { write: (line) => void lines.push(JSON.parse(line) as (typeof lines)[number]) },
    }),
    isTransient: own.isTransient,
    isInTurn: own.isInTurn,
    onInterrupted: (error) => interruptions.push(error),
    ownFolder: FOLDER,
  });
});
afterEach(() => void vi.useRealTimers());

it("limits the log lines per minute, logs the number of the others, and counts all errors", async () => {
  for (let i = 0; i < 10_000; i++) uncaught.take("exception", errorWith(AGENT));
  expect(lines).toHaveLength(10);
  await vi.advanceTimersByTimeAsync(60_000);
  expect([lines.length, lines.at(-1)?.suppressed]).toEqual([11, 9990]);
  uncaught.take("rejection", errorWith(AGENT));
  expect(lines).toHaveLength(12);
  const registry = createRegistry();
  uncaught.register(registry);
  const text = await registry.metrics();
  expect(text).toContain('signalbox_uncaught_errors_total{kind="exception"} 10000');
  expect(text).toContain('signalbox_uncaught_errors_total{kind="rejection"} 1');
  expect(interruptions).toEqual([]);
});

it("logs no other properties of an error, and truncates long text", () => {
  const error = Object.assign(errorWith(AGENT), { request: { authorization: "Bearer sk-secret" } });
  error.message = "m".repeat(1_000_000);
  uncaught.take("exception", error);
  const text = JSON.stringify(lines);
  expect(text).not.toContain("sk-secret");
  expect(text.length).toBeLessThan(10_000);
});

it("logs an error whose getters throw", () => {
  const hostile = new Error("x");
  Object.defineProperty(hostile, "message", {
    get() {
      throw new Error("no");
    },
  });
  uncaught.take("exception", hostile);
  expect(lines).toHaveLength(1);
});

it("stops the process once if server code was interrupted", () => {
  uncaught.take("exception", errorWith(OWN));
  uncaught.take("exception", errorWith(OWN));
  expect([interruptions.length, lines.filter(({ level }) => level === "fatal").length]).toEqual([1, 1]);
});
