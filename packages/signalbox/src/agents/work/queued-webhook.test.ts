/** The attempts of a queued webhook on a clock that the test moves. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type InstanceDatabase,
  type InstanceStore,
  openInstanceStore,
} from "../../engines/instance-store/index.ts";
import { OutputGate } from "../../engines/turn-runtime/output-gate.ts";
import { Transactions } from "../../engines/turn-runtime/transactions.ts";
import { OutgoingWebhookError } from "../../outgoing/index.ts";
import { BASE_SCHEMA, RESERVED_NAMES } from "../instance/base-schema.ts";
import { openWork } from "./open-work.ts";
import { QUEUED_WEBHOOK, webhookRetry } from "./queued-webhook.ts";

const HOUR_MS = 60 * 60 * 1000;
const refused = (status: number, retryable: boolean, retryAfterMs: number | null = null) =>
  new OutgoingWebhookError(`status ${status}`, { status, retryable, retryAfterMs });

const fail = (error: Error) => {
  throw error;
};
const databases: InstanceDatabase[] = [];
let folder: string;
let store: InstanceStore;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-queued-webhook-"));
  store = await openInstanceStore("journal", {
    folder: join(folder, "agents"),
    baseSchema: BASE_SCHEMA,
    reservedNames: RESERVED_NAMES,
    segmentBytes: 2 ** 20,
    onFailure: fail,
    onStall: fail,
  });
});

afterAll(async () => {
  for (const database of databases) await database.close();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

async function open() {
  const clock = { time: 1_000_000, now: () => clock.time };
  const database = await store.open(`d${databases.length}`);
  databases.push(database);
  const gate = new OutputGate({ sync: () => database.sync(), onIdle: () => undefined });
  const transactions = new Transactions(database, gate, fail);
  return {
    clock,
    work: openWork(database, transactions, clock, {
      workChanged: () => undefined,
      lettersChanged: () => undefined,
    }),
  };
}

/** Runs attempts that all fail; returns the waits between them. */
async function failAll(error: (attempt: number) => unknown, retry = webhookRetry()) {
  const { clock, work } = await open();
  work.workQueue.add(QUEUED_WEBHOOK, {}, { retry });
  const waits: number[] = [];
  for (;;) {
    const attempt = work.workQueue.begin();
    if (attempt === null) throw new Error("nothing is due");
    if (attempt.fail(error(waits.length + 1))) return { waits, letters: work.deadLetters.list(10).items };
    const next = work.workQueue.nextAt() ?? 0;
    waits.push(next - clock.time);
    clock.time = next;
  }
}

describe("a queued webhook", () => {
  it("is sent eight times in about 28 hours, with up to 10 % more than the planned delays", async () => {
    const { waits, letters } = await failAll(() => refused(503, true));
    const planned = [5_000, 300_000, 1_800_000, 2 * HOUR_MS, 5 * HOUR_MS, 10 * HOUR_MS, 10 * HOUR_MS];
    expect(waits.length).toBe(planned.length);
    waits.forEach((wait, i) => {
      expect(wait).toBeGreaterThanOrEqual(planned[i] ?? 0);
      expect(wait).toBeLessThanOrEqual((planned[i] ?? 0) * 1.1 + 1);
    });
    expect(letters).toMatchObject([{ attempts: 8 }]);
  });

  it.each([400, 401, 404, 410])(
    "is given up at once after an answer that will not change (%i)",
    async (status) => {
      const { waits, letters } = await failAll(() => refused(status, false));
      expect([waits, letters.length, letters[0]?.attempts]).toEqual([[], 1, 1]);
    },
  );

  it("waits for the receiver's Retry-After if that is longer", async () => {
    const { waits } = await failAll((attempt) => refused(429, true, attempt === 1 ? 60_000 : 1000));
    expect(waits[0]).toBe(60_000);
    expect(waits[1]).toBeGreaterThanOrEqual(300_000);
  });

  it("keeps the delays if only the number of attempts is set, and has bounded delays if a bound is", async () => {
    expect((await failAll(() => refused(500, true), webhookRetry({ maxAttempts: 2 }))).waits.length).toBe(1);
    const { waits } = await failAll(
      () => refused(500, true),
      webhookRetry({ baseDelayMs: 10, maxDelayMs: 20 }),
    );
    expect(waits.length).toBe(5);
    expect(Math.max(...waits)).toBeLessThanOrEqual(20);
  });

  it("is tried again after an error that is no answer, such as a missing secret", async () => {
    const { waits } = await failAll(
      () => new Error("OUT_SECRET is not set"),
      webhookRetry({ maxAttempts: 2 }),
    );
    expect(waits.length).toBe(1);
  });
});
