/** Calls and folders for the tests of the engine. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ulidFloor } from "../../core/ulid.ts";
import type { CallLog, CallRecord } from "./call-log.ts";
import { openDayFileForReading } from "./day-file.ts";
import { dayPath, listDays } from "./day-files.ts";
import { hasUncounted } from "./day-totals.ts";
import type { RowBatch } from "./row-batch.ts";
import { RowQueue } from "./row-queue.ts";
import type { CallField, CallFilter, CallOperator, CallPageRequest } from "./selection.ts";
import { SqliteCallLog } from "./sqlite-call-log.ts";

export const GATEWAY = { accountId: "default", gatewayId: "main" };
export const DAY = 86_400_000;
export const HOUR = 3_600_000;
/** Noon, so that times some hours before and after are on the same day. */
export const NOON = Date.parse("2026-11-15T12:00:00Z");
export const ALL_TIME = { accountId: "default", gatewayIds: null, from: 0, to: NOON * 2 };
export const FIRST_PAGE: CallPageRequest = {
  filters: [],
  search: "",
  orderBy: "createdAt",
  direction: "desc",
  offset: 0,
  limit: 50,
};

/** Makes ids of the same millisecond distinct. */
let uniqueSuffix = 0;

export function callRecord(fields: Partial<CallRecord> = {}): CallRecord {
  const createdAt = fields.createdAt ?? NOON;
  const suffix = (uniqueSuffix++).toString().padStart(8, "0");
  return {
    id: ulidFloor(createdAt).slice(0, -8) + suffix,
    ...GATEWAY,
    createdAt,
    provider: "openai",
    model: "gpt-5-mini",
    path: "chat/completions",
    method: "POST",
    requestType: "chat",
    requestContentType: "application/json",
    responseContentType: "application/json",
    statusCode: 200,
    success: true,
    durationMs: 120.5,
    firstByteMs: 80.25,
    cached: false,
    step: 0,
    tokensInCached: 0,
    tokensInCacheWrite: 0,
    tokensOutReasoning: 0,
    tokensIn: 10,
    tokensOut: 5,
    cost: 0.001,
    isCustomCost: false,
    usageState: "reported",
    isCostEstimated: false,
    metadata: null,
    eventId: null,
    userAgent: "test/1",
    tokenId: null,
    clientDialect: null,
    providerDialect: null,
    dropped: null,
    guardrailAction: null,
    dlpAction: null,
    guardrails: null,
    attempts: null,
    requestBytes: 100,
    responseBytes: 200,
    requestBody: null,
    responseBody: null,
    requestBodyComplete: true,
    responseBodyComplete: true,
    ...fields,
  };
}

/** Calls as the writer receives them. */
export function packed(...calls: readonly CallRecord[]): RowBatch[] {
  const queue = new RowQueue();
  for (const call of calls) queue.add(call);
  return queue.takeBatches().map(({ batch }) => batch);
}

export interface TestLogOptions {
  readonly usageTotals?: boolean;
}

/** Where the calls of one test are stored. */
export interface TestStorage {
  /** Opens a log; the log opened before is closed. */
  openLog(options?: TestLogOptions): Promise<CallLog>;
  /** Whether every stored call is part of the totals. */
  isAllCounted(): Promise<boolean>;
  /** Called after the log was closed. */
  remove(): Promise<void>;
}
export type OpenStorage = () => Promise<TestStorage>;

export const LOG_OPTIONS = {
  maxAgeDays: 3650,
  flushIntervalMs: 200,
  maxBodyBytes: 10_000_000,
  maxTotalBytes: 1_000_000_000,
  maxQueuedCalls: 10_000,
  maxQueuedBytes: 64_000_000,
  onError: rethrow,
  onFatal: rethrow,
};

/** Day files in a folder of their own. */
export async function openSqliteStorage(): Promise<TestStorage> {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-calls-"));
  return {
    openLog: (options = {}) => SqliteCallLog.open({ ...LOG_OPTIONS, folder, ...options }),
    isAllCounted: () => Promise.resolve(listDays(folder).every((day) => isCounted(dayPath(folder, day)))),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

function isCounted(path: string): boolean {
  const file = openDayFileForReading(path);
  try {
    return file !== null && !hasUncounted(file.connection);
  } finally {
    file?.connection.close();
  }
}

/** A log with shorthands for the calls of `GATEWAY`. */
export class TestLog {
  readonly #storage: TestStorage;
  log: CallLog;

  private constructor(storage: TestStorage, log: CallLog) {
    this.#storage = storage;
    this.log = log;
  }

  static async open(openStorage: OpenStorage): Promise<TestLog> {
    const storage = await openStorage();
    return new TestLog(storage, await storage.openLog());
  }

  async reopen(options: TestLogOptions = {}): Promise<void> {
    await this.log.close();
    this.log = await this.#storage.openLog(options);
  }

  isAllCounted(): Promise<boolean> {
    return this.#storage.isAllCounted();
  }

  async remove(): Promise<void> {
    await this.log.close();
    await this.#storage.remove();
  }

  record(fields: Partial<CallRecord> = {}): CallRecord {
    const call = callRecord(fields);
    this.log.record(call);
    return call;
  }

  async ids(page: Partial<CallPageRequest> = {}): Promise<string[]> {
    const { rows } = await this.log.list(GATEWAY, { ...FIRST_PAGE, ...page });
    return rows.map((row) => row.id);
  }

  matching(field: CallField, operator: CallOperator, ...values: CallFilter["values"]): Promise<string[]> {
    return this.ids({ filters: [{ field, operator, values }] });
  }
}

function rethrow(error: Error): never {
  throw error;
}
