/** Objects under kill -9: what was answered is stored, what belongs together is whole, and alarms ring after the restart. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, it } from "vitest";
import { WebSocket } from "ws";
import { waitUntil } from "../support/wait-until.ts";

const PROCESS = join(import.meta.dirname, "../fixtures/object-host-process.ts");
const OBJECTS = ["a", "b", "c", "d"];
const KILLS = 4;

interface Contents {
  readonly entries: number[];
  readonly last?: number;
  readonly failed?: number;
  readonly rungFor?: number;
  readonly sockets: number;
}

let folder: string;
let child: ChildProcess;
let port: string;
/** What the process has printed since it started. */
let rung = new Set<string>();

async function start(): Promise<void> {
  child = spawn(process.execPath, [PROCESS, folder], { stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  rung = new Set();
  // An alarm that is due may ring before the port is printed, and in the same piece of output.
  port = await new Promise<string>((resolve) => {
    lines.on("line", (line) => {
      if (line.startsWith("rung ")) rung.add(line);
      else resolve(line);
    });
  });
}

async function kill(): Promise<void> {
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-objects-"));
  await start();
});
afterAll(async () => {
  await kill();
  await rm(folder, { recursive: true, force: true });
});

async function call(name: string, method: string, ...args: unknown[]): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${port}/${name}/${method}`, {
    method: "POST",
    body: JSON.stringify(args),
  });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}
const read = (name: string) => call(name, "read") as Promise<Contents>;

let next = 0;
/** Numbers whose storing was acknowledged, and those that were sent, by object. */
const acknowledged = new Map(OBJECTS.map((name) => [name, new Set<number>()]));
const sent = new Map(OBJECTS.map((name) => [name, new Set<number>()]));
const failed = new Map<string, number>();

/** Writes to the object in three ways until the process is gone. */
async function load(name: string): Promise<void> {
  const note = (n: number) => acknowledged.get(name)?.add(n);
  const take = () => {
    next += 1;
    sent.get(name)?.add(next);
    return next;
  };
  const webSocket = new WebSocket(`ws://127.0.0.1:${port}/${name}`);
  const closed = new Promise<void>((resolve) => {
    webSocket.on("close", () => resolve());
    webSocket.on("error", () => resolve());
  });
  webSocket.on("message", (data: Buffer) => {
    note(Number(data.toString()));
    webSocket.send(String(take()));
  });
  webSocket.on("open", () => webSocket.send(String(take())));
  try {
    for (;;) {
      note((await call(name, "add", take())) as number);
      const n = take();
      const error = await call(name, "addAndFail", n).catch((reason: unknown) => reason as Error);
      if (!(error as Error).message.includes("failed after writing")) break;
      note(n);
      failed.set(name, n);
    }
  } catch {
    // The process was killed.
  }
  await closed;
}

it("nothing that was answered is lost, nothing is half-written, and every alarm rings", async () => {
  for (let round = 0; round < KILLS; round++) {
    const before = next;
    const loads = OBJECTS.map(load);
    await waitUntil(
      () => next,
      (count) => count > before + 100 + 40 * round,
    );
    await kill();
    await Promise.all(loads);
    await start();
    for (const name of OBJECTS) {
      const { entries, last, failed: lastFailed, sockets } = await read(name);
      const stored = new Set(entries);
      expect([...(acknowledged.get(name) ?? [])].filter((n) => !stored.has(n))).toEqual([]);
      expect(entries.filter((n) => sent.get(name)?.has(n) !== true)).toEqual([]);
      // The value was written in the same segment as a row.
      expect(stored.has(last ?? -1)).toBe(true);
      if (failed.has(name)) expect(lastFailed).toBeGreaterThanOrEqual(failed.get(name) ?? 0);
      expect(sockets).toBe(0);
    }
  }
  // No event touches the objects after the last kill: only their alarms load them.
  // The time is longer than a pause of the machine: no alarm rings before the kill.
  for (const name of OBJECTS) await call(name, "add", (next += 1), 5000);
  await kill();
  await start();
  await waitUntil(
    () => rung.size,
    (count) => count === OBJECTS.length,
  );
  expect([...rung].toSorted()).toEqual(OBJECTS.map((name) => `rung ${name}`));
  for (const name of OBJECTS) {
    const { last, rungFor } = await read(name);
    expect(rungFor).toBe(last);
  }
});
