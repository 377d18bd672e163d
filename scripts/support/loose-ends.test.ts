import { expect, it } from "vitest";
import { findLooseEnds } from "./loose-ends.ts";

const problems = (text: string) =>
  findLooseEnds("sample.ts", text).map(({ line, problem }) => `${line}: ${problem}`);

it.each([
  "setInterval(() => void flush(), 1000);",
  "setTimeout(() => void this.flush(), 1000);",
  "setImmediate(() => { void start(); });",
  "setInterval(async () => { await flush(); }, 1000);",
  "// Every second.\nsetInterval(() => void flush(), 1000);",
])("finds a promise that a timer ignores: %s", (text) => {
  expect(problems(text)).toEqual([expect.stringContaining("ignores a promise")]);
});

it.each([
  "setInterval(() => flush().catch(log), 1000);",
  "setTimeout(() => void flush().catch(log), 1000);",
  "// It never rejects.\nsetTimeout(() => void flush(), 1000);",
  "setTimeout(() => this.check(), 10);",
  "setTimeout(resolve, 10);",
])("accepts a timer that handles failures: %s", (text) => {
  expect(problems(text)).toEqual([]);
});

it.each(["work().catch(() => undefined);", "work().catch(() => {});", "try { work(); } catch {}"])(
  "finds a failure that is ignored without a reason: %s",
  (text) => {
    expect(problems(`const a = 1;\n\n${text}`)).toEqual([expect.stringMatching(/^3: .*without a comment/)]);
  },
);

it.each([
  "// The client has disconnected.\nwork().catch(() => undefined);",
  "work().catch(() => {\n  // The client has disconnected.\n});",
  "try { work(); } catch {\n  // The client has disconnected.\n}",
  "work().catch((error) => log(error));",
])("accepts a failure that is ignored for a reason: %s", (text) => {
  expect(problems(text)).toEqual([]);
});

it.each([
  'import { connect } from "node:net";\nconst socket = connect(1);',
  'import * as net from "node:net";\nnet.createServer();',
  'import { spawn as start } from "node:child_process";\nstart("ls");',
  'import { Worker } from "node:worker_threads";\nnew Worker("x");',
  'import { WebSocketServer } from "ws";\nserver.handleUpgrade(request, socket, head, use);',
  'import fs from "node:fs";\nfs.createWriteStream("x");',
])("finds an emitter without an error listener: %s", (text) => {
  expect(problems(text)).toEqual([expect.stringMatching(/^2: .*listener for "error"/)]);
});

it.each([
  'import { connect } from "node:net";\nconnect(1).on("error", close);',
  'import { spawn } from "node:child_process";\nconst child = spawn("ls");\nawait once(child, "exit");',
  'import type { Worker } from "node:worker_threads";\nconst worker: Worker = make();',
  'import { connect } from "./connect.ts";\nconnect(1);',
])("accepts emitters with a listener, and other functions with the same names: %s", (text) => {
  expect(problems(text)).toEqual([]);
});

it("refuses a file that it cannot parse", () => {
  expect(() => findLooseEnds("sample.ts", "const = ;")).toThrow("cannot be parsed");
});

it.each(["const a = Buffer.alloc(1);", "const a = new SharedArrayBuffer(1);", "socket._httpMessage;"])(
  "finds low-level code outside the engines: %s",
  (text) => {
    expect(problems(text)).toEqual([expect.stringContaining("belongs below engines/")]);
    expect(findLooseEnds("packages/signalbox/src/engines/relay/sample.ts", text)).toEqual([]);
    expect(findLooseEnds("packages/signalbox/src/database/sample.ts", text)).toEqual([]);
  },
);

it("finds a write that may be a part of what was asked for", () => {
  const text = 'import { openSync, writeSync } from "node:fs";\nwriteSync(openSync("a", "w"), "text");';
  expect(problems(text)).toEqual([expect.stringContaining("use writeWhole()")]);
  expect(findLooseEnds("packages/signalbox/src/engines/durable-file/sample.ts", text)).toEqual([]);
});
