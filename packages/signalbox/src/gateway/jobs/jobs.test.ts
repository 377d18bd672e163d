import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openTestPostgres } from "../../../../../test/support/test-postgres.ts";
import type { OwnCall } from "../../contracts/own-server.ts";
import { migrate } from "../../database/migrate.ts";
import { PostgresDatabase } from "../../database/postgres/postgres-database.ts";
import { SqliteDatabase } from "../../database/sqlite/sqlite-database.ts";
import type { CallRecord } from "../../engines/call-log/index.ts";
import type { Arrival, CallOutcome } from "../call/call-start.ts";
import { PriceTable } from "../limits/price-table.ts";
import type { StepCharge } from "../limits/call-rules.ts";
import type { Step } from "../step/step.ts";
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
  grants = new Set();
});
afterEach(async () => {
  await database.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What was reserved, and has not been settled. */
let grants: Set<object>;
const ANSWERED = {
  response: { body: { model: "gpt-test", usage: { prompt_tokens: 1e6, completion_tokens: 1e6 } } },
};
const ASKED = { body: { model: "gpt-test", max_tokens: 1000, messages: [] } };

/** A process with jobs. */
function process(): Jobs {
  const rules = {
    needsTokens: true,
    setMetadata: () => undefined,
    limitsCostOf: () => true,
    reserve: () => {
      const grant = {};
      grants.add(grant);
      return grant;
    },
    settle: (grant: object | null, charges: readonly StepCharge[]) => {
      if (grant !== null && !grants.delete(grant)) throw new Error("settled twice");
      charged.push(...charges);
    },
  };
  const prices = new PriceTable({ openai: { "gpt-test": { in: 1, out: 2 } } }, { now: () => now });
  const parts = {
    store,
    clock: { now: () => now },
    server: {
      async call({ target }: OwnCall) {
        asked.push(target);
        if (!target.includes("/files/")) return Response.json(state);
        return new Response(`${JSON.stringify(target.includes("/files/in/") ? ASKED : ANSWERED)}\n`);
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

describe("a job of a node that shares its database", () => {
  const ARRIVAL = {
    gateway: { accountId: "a", id: "g", settings: { collect_logs: true, spend_limits: null } },
    caller: { token: null, tokenId: null, query: "", text: null },
    request: { headers: {} },
  } as unknown as Arrival;
  const STEP = {
    provider: { slug: "openai" },
    path: "batches",
    requestType: "",
    model: "",
    upstream: {
      method: "POST",
      headers: [],
      body: { kind: "whole", bytes: Buffer.from('{"input_file_id":"in"}') },
    },
  } as unknown as Step;
  const outcome = (body: object) =>
    ({
      status: 200,
      head: { status: 200 },
      body: Buffer.from(JSON.stringify(body)),
      isBodyWhole: true,
      isAbandoned: false,
      attemptStartedAt: 0,
      step: STEP,
    }) as unknown as CallOutcome;

  let server: Awaited<ReturnType<typeof openTestPostgres>>;
  let shared: PostgresDatabase;
  beforeAll(async () => {
    server = await openTestPostgres();
    const fail = (error: Error) => {
      throw error;
    };
    shared = await PostgresDatabase.open(server.url, fail, {
      cluster: {
        secretCheck: "same",
        shared: [],
        linkVersions: { min: 1, max: 1 },
        openAddress: () => Promise.resolve({ host: "127.0.0.1", port: 0 }),
        onMembers: () => undefined,
        onRejoined: () => undefined,
      },
    });
    await migrate(shared);
  });
  afterAll(async () => {
    await shared.close();
    await server.drop();
  });
  beforeEach(() => {
    store = new JobStore(shared);
  });

  const REF = { accountId: "a", gatewayId: "g", provider: "openai", id: "batch_1" };
  const ENDED = { id: "batch_1", status: "completed", output_file_id: "out" };

  /** Starts the job, and lets a client see at another node that it has ended. */
  async function startAndSee(owner: Jobs, other: Jobs): Promise<void> {
    const api = owner.apiOf(STEP);
    if (api === null) throw new Error("no job");
    const reserved = await owner.reserve(api, ARRIVAL, STEP, {});
    reserved.ended(outcome({ id: "batch_1", status: "validating" }));
    await expect.poll(() => store.find(REF)).toBeDefined();
    expect(grants.size).toBe(1);
    state = ENDED;
    now += 60_000;
    other.watch(ARRIVAL, "openai", "batches/batch_1")?.(outcome(ENDED));
    await other.stop();
  }

  it("is settled by the node that reserved it, with its reservation, once another node has seen its end", async () => {
    const [owner, other] = [process(), process()];
    await startAndSee(owner, other);
    // It is not the other node's: the reservation is in the memory of its owner.
    await process().sweep();
    expect([charged.length, grants.size]).toEqual([0, 1]);
    await owner.sweep();
    expect(charged.map(({ cost }) => cost)).toEqual([1.5]);
    expect([grants.size, rows.length, await store.find(REF)]).toEqual([0, 1, undefined]);
    await Promise.all([owner, process()].map((one) => one.sweep()));
    expect(rows).toHaveLength(1);
  });

  it("is settled by another node if its own is gone, with what exceeds the reservation", async () => {
    await startAndSee(process(), process());
    now += 2 * HOUR + 1;
    const others = [process(), process()];
    await Promise.all(others.map((one) => one.sweep()));
    // A reservation of 1,000 tokens at half of two dollars a million was counted when the owner ended.
    expect(charged).toHaveLength(1);
    expect(charged[0]?.cost).toBeCloseTo(1.5 - 0.001, 3);
    expect(rows).toHaveLength(1);
  });
});
