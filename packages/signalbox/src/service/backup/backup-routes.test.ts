/** Backups of a service that was made up for the test: clients that do not read, several at once, a full disk. */
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { SignalboxError } from "@signalbox/protocol";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ROOT } from "../../accounts/principal.ts";
import { ConfigError } from "../../config/index.ts";
import type { LocalInstanceStore } from "../../engines/instance-store/index.ts";
import type { RouteRequest } from "../../http/route.ts";
import { createLogger } from "../../telemetry/logger.ts";
import { backupRoutes } from "./backup-routes.ts";
import type { BackupSource } from "./create-backup.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-backup-"));
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(folder, { recursive: true, force: true });
});

/** Larger than all buffers between the backup and its client. */
const INSTANCE = Buffer.alloc(3 * 1024 * 1024, "x");
const PATIENCE = { timeout: 600_000 };
const IDS = ["a", "b"].map((digit) => digit.repeat(40));

function open(change: Partial<BackupSource> = {}, copy = writeFileSync): () => Promise<Readable> {
  const source: BackupSource = {
    folder,
    stagingFolder: folder,
    hasDatabase: false,
    database: null,
    postgres: null,
    mustBeAlone: false,
    variables: [],
    instances: {
      listIds: () => IDS,
      // As of an instance that is large.
      readClosed: () => Promise.resolve(null),
      copy: (_: string, to: string) => {
        copy(to, INSTANCE);
        return Promise.resolve(true);
      },
    } as unknown as LocalInstanceStore,
    flush: () => Promise.resolve(),
    ...change,
  };
  const logger = createLogger({ level: "silent", isPretty: false });
  const [route] = backupRoutes({ source: () => source, folder, logger });
  return async () => {
    const body = { call_logs: true, secrets: true };
    const signal = new AbortController().signal;
    const reply = await route?.handler({ body, signal, principal: ROOT } as unknown as RouteRequest);
    return reply?.raw?.body as Readable;
  };
}

const staged = () => {
  const path = join(folder, "backup-staging");
  return existsSync(path) ? readdirSync(path) : [];
};
const noSpace = () => {
  throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
};
const refusal = (id: string) => expect.objectContaining({ id });

it("a client that stops reading is cut off after five minutes, and its temporary files are removed", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const stream = await open()();
  const ended = new Promise<Error>((resolve) => stream.once("error", resolve));
  stream.once("readable", () => undefined);
  // Until no more is read: each piece has its own five minutes. Waiting moves the clock, too.
  const isFull = () => expect(stream.readableLength).toBeGreaterThanOrEqual(stream.readableHighWaterMark);
  await vi.waitFor(isFull, PATIENCE);
  expect(staged()).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(270_000);
  expect(stream.destroyed).toBe(false);
  await vi.advanceTimersByTimeAsync(31_000);
  expect((await ended).message).toBe("the client does not read");
  vi.useRealTimers();
  await vi.waitFor(() => expect(staged()).toEqual([]), PATIENCE);
});

it("two backups are made at once, a third is refused until one of them has ended", async () => {
  const start = open();
  const [first, second] = [await start(), await start()];
  await expect(start()).rejects.toEqual(refusal("overloaded"));
  for await (const chunk of first) expect(chunk).toBeInstanceOf(Buffer);
  await vi.waitFor(() => expect(staged()).toHaveLength(1), PATIENCE);
  const third = await start();
  second.destroy();
  third.destroy();
  await vi.waitFor(() => expect(staged()).toEqual([]), PATIENCE);
});

it("a disk that is full, or a database that is gone, is named; both leave nothing and count as no backup", async () => {
  const start = open({}, noSpace);
  for (let i = 0; i < 3; i++) {
    const error = await start().then(String, (thrown: unknown) => thrown as SignalboxError);
    expect([error, String(error)]).toEqual([
      refusal("storage_unavailable"),
      expect.stringContaining("the disk is full"),
    ]);
  }
  const gone = open({ flush: () => Promise.reject(new ConfigError("cannot connect to PostgreSQL: x")) });
  await expect(gone()).rejects.toThrow("cannot connect to PostgreSQL: x");
  expect(staged()).toEqual([]);
});

it("a disk that fills up in the middle ends the response early", async () => {
  let count = 0;
  const stream = await open({}, (...args) => (++count === 1 ? writeFileSync(...args) : noSpace()))();
  const read = async () => {
    for await (const chunk of stream) expect(chunk).toBeInstanceOf(Buffer);
  };
  await expect(read()).rejects.toThrow("ENOSPC");
  await vi.waitFor(() => expect(staged()).toEqual([]), PATIENCE);
});
