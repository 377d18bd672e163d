import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OwnCall } from "../../contracts/own-server.ts";
import { migrate } from "../../database/migrate.ts";
import { SqliteDatabase } from "../../database/sqlite/sqlite-database.ts";
import type { CallRecord } from "../../engines/call-log/index.ts";
import { PriceTable } from "../limits/price-table.ts";
import type { StepCharge } from "../limits/call-rules.ts";
import { type JobDetails, JobStore, type StoredJob } from "./job-store.ts";
import { Jobs, type JobsParts } from "./jobs.ts";

const HOUR = 3_600_000;

let folder: string;
let database: SqliteDatabase;
let store: JobStore;
let now: number;
let asked: string[];
let state: object;
let rows: CallRecord[];
let charged: StepCharge[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-jobs-"));
  database = await SqliteDatabase.open(join(folder, "test.db"), (error) => {
    throw error;
  });
  await migrate(database);
  store = new JobStore(database);
  now = Date.parse("2026-01-01T00:00:00Z");
  asked = [];
  state = { id: "batch_1", status: "in_progress" };
  rows = [];
  charged = [];
});
afterEach(async () => {
  await database.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A process that has started no job itself. */
function process(): Jobs {
  const rules = {
    setMetadata: () => undefined,
    settle: (_: null, charges: readonly StepCharge[]) => void charged.push(...charges),
  };
  const prices = new PriceTable({ openai: { "gpt-test": { in: 1, out: 2 } } }, { now: () => now });
  const parts = {
    store,
    clock: { now: () => now },
    server: {
      async call({ target }: OwnCall) {
        asked.push(target);
        const line = {
          response: { body: { model: "gpt-test", usage: { prompt_tokens: 1e6, completion_tokens: 1e6 } } },
        };
        return target.includes("/files/") ? new Response(`${JSON.stringify(line)}\n`) : Response.json(state);
      },
    },
    gateways: {
      find: () => ({ accountId: "a", id: "g", settings: { collect_logs: true, spend_limits: null } }),
    },
    tokens: { find: () => undefined },
    limits: { limits: { rulesOf: () => rules }, prices },
    callLog: { record: (row: CallRecord) => void rows.push(row), whenRoom: async () => undefined },
    onError: (error: unknown) => {
      throw error;
    },
  };
  return new Jobs(parts as unknown as JobsParts);
}

const DETAILS: JobDetails = {
  api: "batch",
  path: "batches",
  query: "",
  model: "",
  reserved: [{ model: "gpt-test", cost: 1, tokens: 500 }],
  isHeld: true,
  keyAlias: null,
  tokenId: null,
  metadata: null,
  eventId: null,
  custom: undefined,
};

async function add(more: Partial<JobDetails> = {}): Promise<void> {
  const job: StoredJob = {
    accountId: "a",
    gatewayId: "g",
    provider: "openai",
    id: "batch_1",
    details: { ...DETAILS, ...more },
    createdAt: now,
  };
  await store.add(job, "another process", now + HOUR);
}

describe("a job that nobody asks for", () => {
  it("is asked for at most once an hour", async () => {
    await add();
    const jobs = process();
    for (let minute = 0; minute < 180; minute++) {
      now += 60_000;
      await jobs.sweep();
    }
    expect(asked).toEqual(Array.from({ length: 3 }, () => "/v1/a/g/openai/batches/batch_1"));
  });

  it("is settled once, by one of several processes, when it has ended", async () => {
    await add();
    state = { id: "batch_1", status: "completed", output_file_id: "file-1" };
    now += HOUR;
    await Promise.all([process(), process(), process()].map((one) => one.sweep()));
    // A batch costs half.
    expect(rows.map(({ model, cost, tokensIn }) => [model, cost, tokensIn])).toEqual([
      ["gpt-test", 1.5, 1e6],
    ]);
    // The process that had reserved a dollar has ended, and counted it.
    expect(charged.map(({ cost }) => cost)).toEqual([0.5]);
    now += HOUR;
    await process().sweep();
    expect(rows).toHaveLength(1);
  });

  it("is charged whole if nothing was reserved for it", async () => {
    await add({ isHeld: false });
    state = { id: "batch_1", status: "completed", output_file_id: "file-1" };
    now += HOUR;
    await process().sweep();
    expect(charged.map(({ cost }) => cost)).toEqual([1.5]);
  });

  it("counts with what was reserved if it is not seen to end within eight days", async () => {
    await add();
    const jobs = process();
    for (let hour = 0; hour < 8 * 24 + 1; hour++) {
      now += HOUR;
      await jobs.sweep();
    }
    expect(rows.map(({ cost, isCostEstimated }) => [cost, isCostEstimated])).toEqual([[1, true]]);
    expect(charged.map(({ cost }) => cost)).toEqual([0]);
  });

  it("of a price that the caller has stated costs this once", async () => {
    await add({ custom: { total: 3 }, isHeld: false });
    state = { id: "batch_1", status: "completed", output_file_id: "file-1" };
    now += HOUR;
    await process().sweep();
    expect(rows.map(({ cost, isCustomCost }) => [cost, isCustomCost])).toEqual([[3, true]]);
  });
});
