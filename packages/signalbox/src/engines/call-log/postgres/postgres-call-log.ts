/**
 * The call log in PostgreSQL, for one node or many: the queue of the main thread, a thread that writes with COPY, and reads on connections of
 * the control plane. See docs/decisions/0153.
 */
import { randomUUID } from "node:crypto";
import type { Worker } from "node:worker_threads";
import { type Clock, systemClock } from "../../../core/clock.ts";
import { isUlid } from "../../../core/ulid.ts";
import type { BodySide, CallLog, CallPage, CallPatch, CallRow, GatewayRef, StoredBody } from "../call-log.ts";
import type { CallNeighbours, CallScan, CallSlice, StoredCalls } from "../call-scan.ts";
import { QueuedCallLog, type QueuedCallLogOptions } from "../queued-call-log.ts";
import type { CallDeletion, CallPageRequest, CallRanges, CallSelection } from "../selection.ts";
import type { UsageFigures, UsageQuery } from "../usage.ts";
import type { UsageBy, UsageByQuery } from "../usage-by.ts";
import { isPageByTime } from "../quick-read.ts";
import { startWorker } from "../worker-requests.ts";
import { CallChanges } from "./call-changes.ts";
import { CallQueries } from "./call-queries.ts";
import { type CallDatabase, ensureTables } from "./call-tables.ts";
import { DayReads } from "./day-reads.ts";
import { ScanQueries } from "./scan-queries.ts";
import { summariseBy } from "./usage-by-queries.ts";
import type { PostgresWriterOptions } from "./postgres-writer.ts";

export interface PostgresCallLogOptions extends QueuedCallLogOptions {
  /** The control plane's database. */
  readonly database: CallDatabase;
  /** Its connection string, which may name several servers. */
  readonly url: string;
  readonly maxAgeDays: number;
  readonly maxBodyBytes: number;
  /** Of all stored rows and bodies; the oldest bodies are removed first, then the oldest rows. */
  readonly maxTotalBytes: number;
  /** Keeps totals by token and metadata; switched on later, they are rebuilt from the rows. Default true. */
  readonly usageTotals?: boolean;
  /** For tests of expiry. Default: the clock of PostgreSQL. */
  readonly clock?: Clock;
  /** Resolves when every call that another node has recorded before is committed. Default: there is no other node. */
  readonly flushOthers?: () => Promise<void>;
  /** For tests that end the thread. */
  readonly startWriter?: (options: PostgresWriterThreadOptions) => Worker;
}

export interface PostgresWriterThreadOptions extends PostgresWriterOptions {
  readonly flushIntervalMs: number;
}

export class PostgresCallLog extends QueuedCallLog implements CallLog {
  readonly #options: PostgresCallLogOptions;
  readonly #queries: CallQueries;
  readonly #dayReads: DayReads;
  readonly #scans: ScanQueries;
  readonly #changes: CallChanges;
  /** Every release can read the tables. */
  readonly unreadableDays: readonly string[] = [];

  private constructor(options: PostgresCallLogOptions) {
    const writerId = randomUUID();
    super(options, {
      startWriter: (flushIntervalMs) => startWriter(options, { writerId, flushIntervalMs }),
      silenceReason: "PostgreSQL does not respond",
    });
    this.#options = options;
    this.#queries = new CallQueries(options.database);
    this.#dayReads = new DayReads(options.database);
    this.#scans = new ScanQueries(options.database, options.clock ?? systemClock);
    this.#changes = new CallChanges(options.database);
  }

  /** Resolves when the tables exist, expired days are removed, and there are partitions for the next calls. */
  static async open(options: PostgresCallLogOptions): Promise<PostgresCallLog> {
    const log = new PostgresCallLog(options);
    await log.begin("PostgreSQL", () => ensureTables(options.database));
    return log;
  }

  async list(gateway: GatewayRef, page: CallPageRequest): Promise<CallPage> {
    await this.#whenCommitted();
    return isPageByTime(page) ? this.#queries.list(gateway, page) : this.#dayReads.list(gateway, page);
  }

  async ranges(gateway: GatewayRef, selection: CallSelection): Promise<CallRanges> {
    await this.#whenCommitted();
    return this.#dayReads.ranges(gateway, selection);
  }

  async get(gateway: GatewayRef, id: string): Promise<CallRow | null> {
    if (!isUlid(id)) return null;
    await this.#whenCommitted();
    return this.#queries.get(gateway, id);
  }

  async body(
    gateway: GatewayRef,
    id: string,
    side: BodySide,
    maxBytes = Number.POSITIVE_INFINITY,
  ): Promise<StoredBody | null> {
    if (!isUlid(id)) return null;
    await this.#whenCommitted();
    return this.#queries.body(gateway, id, side, maxBytes);
  }

  async summarise(query: UsageQuery): Promise<UsageFigures[]> {
    await this.#whenCommitted();
    return this.#queries.summarise(query);
  }

  async summariseBy(query: UsageByQuery, signal?: AbortSignal): Promise<UsageBy> {
    await this.#whenCommitted();
    return summariseBy(this.#options.database, query, signal);
  }

  async scan(scan: CallScan): Promise<CallSlice> {
    await this.#whenCommitted();
    return this.#scans.scan(scan);
  }

  async storedAfter(position: string | null, limit: number): Promise<StoredCalls> {
    await this.#whenCommitted();
    return this.#scans.storedAfter(position, limit);
  }

  async neighbours(gateway: GatewayRef, id: string): Promise<CallNeighbours> {
    if (!isUlid(id)) return { newer: null, older: null };
    await this.#whenCommitted();
    return this.#scans.neighbours(gateway, id);
  }

  async edit(gateway: GatewayRef, id: string, patch: CallPatch): Promise<boolean> {
    if (!isUlid(id)) return false;
    await this.#whenCommitted();
    return this.#changes.edit(gateway, id, patch);
  }

  async delete(gateway: GatewayRef, deletion: CallDeletion): Promise<number> {
    const { limit, orderBy, direction, ...selection } = deletion;
    await this.#whenCommitted();
    if (limit === null) return this.#changes.deleteMatching(gateway, selection);
    const ids = await this.#queries.select(gateway, selection, { orderBy, direction }, limit);
    return this.#changes.deleteIds(gateway, ids);
  }

  async dropGateway(gateway: GatewayRef): Promise<void> {
    this.forgetQuota(gateway);
    await this.#whenCommitted();
    await this.#changes.dropGateway(gateway);
  }

  /** Also creates the partition of the next day. */
  override async expire(): Promise<void> {
    await this.request("expire", this.#options.clock?.now() ?? null, this.#options.maxAgeDays);
  }

  reconnect(): void {
    this.#dayReads.forget();
    // A thread that has ended has no connection.
    this.request("reconnect").catch(() => undefined);
  }

  /** Reads use connections of the control plane. */
  protected override closeReads(): Promise<void> {
    return Promise.resolve();
  }

  async #whenCommitted(): Promise<void> {
    await Promise.all([this.flush(), this.#options.flushOthers?.()]);
  }
}

function startWriter(
  options: PostgresCallLogOptions,
  thread: { readonly writerId: string; readonly flushIntervalMs: number },
): Worker {
  const { url, maxBodyBytes, maxTotalBytes, usageTotals = true } = options;
  const writerOptions: PostgresWriterThreadOptions = {
    url,
    maxBodyBytes,
    maxTotalBytes,
    usageTotals,
    ...thread,
  };
  return options.startWriter === undefined
    ? startWorker("postgres-writer", import.meta.url, writerOptions)
    : options.startWriter(writerOptions);
}
