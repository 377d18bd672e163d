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
])("finds a promise that a timer lets go: %s", (text) => {
  expect(problems(text)).toEqual([expect.stringContaining("lets a promise go")]);
});

it.each([
  "setInterval(() => flush().catch(log), 1000);",
  "setTimeout(() => void flush().catch(log), 1000);",
  "// It never rejects.\nsetTimeout(() => void flush(), 1000);",
  "setTimeout(() => this.check(), 10);",
  "setTimeout(resolve, 10);",
])("lets a timer pass that hears of failures: %s", (text) => {
  expect(problems(text)).toEqual([]);
});

it.each(["work().catch(() => undefined);", "work().catch(() => {});", "try { work(); } catch {}"])(
  "finds a failure that is swallowed without a reason: %s",
  (text) => {
    expect(problems(`const a = 1;\n\n${text}`)).toEqual([expect.stringMatching(/^3: .*without a comment/)]);
  },
);

it.each([
  "// Nobody is there any more.\nwork().catch(() => undefined);",
  "work().catch(() => {\n  // Nobody is there any more.\n});",
  "try { work(); } catch {\n  // Nobody is there any more.\n}",
  "work().catch((error) => log(error));",
])("lets a failure pass that is swallowed for a reason: %s", (text) => {
  expect(problems(text)).toEqual([]);
});

it.each([
  'import { connect } from "node:net";\nconst socket = connect(1);',
  'import * as net from "node:net";\nnet.createServer();',
  'import { spawn as start } from "node:child_process";\nstart("ls");',
  'import { Worker } from "node:worker_threads";\nnew Worker("x");',
  'import { WebSocketServer } from "ws";\nserver.handleUpgrade(request, socket, head, use);',
  'import fs from "node:fs";\nfs.createWriteStream("x");',
])("finds what has an error event that nobody hears: %s", (text) => {
  expect(problems(text)).toEqual([expect.stringMatching(/^2: .*nobody hears/)]);
});

it.each([
  'import { connect } from "node:net";\nconnect(1).on("error", close);',
  'import { spawn } from "node:child_process";\nconst child = spawn("ls");\nawait once(child, "exit");',
  'import type { Worker } from "node:worker_threads";\nconst worker: Worker = make();',
  'import { connect } from "./connect.ts";\nconnect(1);',
])("lets pass what is listened to, and what only bears the name: %s", (text) => {
  expect(problems(text)).toEqual([]);
});

it("refuses a file that it cannot read", () => {
  expect(() => findLooseEnds("sample.ts", "const = ;")).toThrow("cannot be parsed");
});
