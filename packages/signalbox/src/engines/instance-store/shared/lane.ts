/**
 * Group commit into PostgreSQL: the records of all instances of a store that are ready go in one statement, over one connection.
 *
 *   pending ──taken by the next group──► sent ──returned──────────────────────► acknowledged
 *                                          ├────not returned──────────────────► refused: the instance is fenced
 *                                          └────connection lost, or no confirmation──► read: acknowledged, or fenced
 *
 * Invariants:
 * 1. One group is in flight, and an instance has one record in a group. So a record is sent only after the one before it was acknowledged.
 * 2. A group is sent again only if the server has answered that it was rolled back. After any other failure the last positions are read.
 * 3. After a reconnect every instance is compared with PostgreSQL before the next group: a server that has less has lost acknowledged
 *    records, and the instance is fenced.
 * 4. Callers wait for a server that does not answer for `MAX_WAIT_MS`. They do not wait at all if this node is the only one without it: others have
 *    its instances by then.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { repeat, type Repetition } from "../../../core/repeat.ts";
import { fullJitterDelay } from "../../../core/retry.ts";
import { isLocked, isStatementError } from "../../postgres-session/index.ts";
import type { Compressor } from "./compressor.ts";
import type { HeldInstance } from "./held-instance.ts";
import type { History, InstanceState, NewRecord } from "./history.ts";
import type { FenceReason } from "./ownership.ts";
import {
  databasePagesOf,
  eachPart,
  markOf,
  maxRawBytes,
  pagesOf,
  writeEmptyRecord,
  writeRawRecord,
} from "./record.ts";
import { FrameMemory } from "./frame-memory.ts";
import { KINDS } from "./statements.ts";
import type { StoreClient } from "./store-connections.ts";

/** Raw bytes of one group; a larger record goes alone. */
const MAX_GROUP_BYTES = 4 * 1024 * 1024;
/** How long callers wait for a server that does not answer. */
const MAX_WAIT_MS = 10_000;
/** Instances in one question. */
const MAX_COMPARED = 1000;
const RETRY = { baseDelayMs: 20, maxDelayMs: 500 };
/** How often a wait is judged. Not by a timer for each group: groups are written every millisecond. */
const WATCH_MS = 250;

export interface LaneOptions {
  readonly history: History;
  /** Of this lane alone. */
  readonly compressor: Compressor;
  readonly onFenced: (instance: HeldInstance, reason: FenceReason, cause?: unknown) => void;
  /** The instances of the store, open or not. */
  readonly heldInstances: () => readonly HeldInstance[];
  readonly figures: LaneFigures;
  /** How long this node has not reached its database; infinite if others have reached it. */
  readonly cutOffMs: () => number;
}

export interface LaneFigures {
  appends: number;
  records: number;
  bytes: number;
  refusals: number;
  unknownOutcomes: number;
  lostRecords: number;
}

/** Commits of an instance that wait for, or are in, a group. */
export class PendingRecord {
  readonly instance: HeldInstance;
  readonly pageBytes: number;
  /** Where the frames of each commit are in the lane's memory. */
  readonly commits: { readonly start: number; readonly end: number }[] = [];
  bytes = 0;
  readonly done = Promise.withResolvers<void>();
  readonly createdAt = performance.now();
  isDurable = false;

  constructor(instance: HeldInstance, pageBytes: number) {
    this.instance = instance;
    this.pageBytes = pageBytes;
    // The caller may ignore the promise; the fence is reported in any case.
    this.done.promise.catch(() => undefined);
  }
}

interface Group {
  readonly records: readonly PendingRecord[];
  readonly rows: readonly NewRecord[];
  readonly bytes: Buffer;
}

const nextLoop = promisify(setImmediate);

export class Lane {
  readonly #options: LaneOptions;
  /** By instance. */
  #pending = new Map<HeldInstance, PendingRecord>();
  readonly #frames = new FrameMemory();
  #flushing: Promise<void> | null = null;
  /** When the oldest record of the group that is being written was created. */
  #writingSince: number | null = null;
  #connection: StoreClient | null = null;
  #hasConnected = false;
  readonly #watch: Repetition;

  constructor(options: LaneOptions) {
    this.#options = options;
    this.#watch = repeat(
      WATCH_MS,
      () => this.#endLongWait(),
      () => undefined,
    );
  }

  /** Copies the frames of one read of the WAL before it returns; no frames for a database without a commit. */
  append(instance: HeldInstance, pageBytes: number, frames: Buffer): PendingRecord {
    let record = this.#pending.get(instance);
    if (record === undefined) {
      record = new PendingRecord(instance, pageBytes);
      if (instance.fenced !== null) {
        record.done.reject(instance.fenced);
        return record;
      }
      this.#pending.set(instance, record);
    }
    if (frames.length > 0) {
      record.commits.push(this.#frames.add(frames));
      record.bytes += frames.length;
    }
    // Instances whose turns end in this iteration of the event loop share the group.
    this.#flushing ??= new Promise((resolve) => setImmediate(() => resolve(this.#flush())));
    return record;
  }

  /** How long the oldest record has waited; 0 if none waits. */
  get lagMs(): number {
    const [first] = this.#pending.values();
    const since = this.#writingSince ?? first?.createdAt;
    return since === undefined ? 0 : performance.now() - since;
  }

  /** Resolves when nothing is pending. */
  async settled(): Promise<void> {
    while (this.#flushing !== null) await this.#flushing;
  }

  async close(): Promise<void> {
    await this.settled();
    await this.#watch.stop();
    const connection = this.#connection;
    this.#connection = null;
    if (connection !== null) await this.#options.history.connections.end(connection);
  }

  async #flush(): Promise<void> {
    while (this.#pending.size > 0) {
      const records = this.#take();
      this.#writingSince = records[0]?.createdAt ?? null;
      try {
        await this.#write(records);
      } catch (error) {
        for (const record of records) this.#fence(record, "unknown", error);
      }
      this.#writingSince = null;
      // Events that arrived meanwhile are handled first and share the next group.
      await nextLoop();
    }
    this.#flushing = null;
  }

  #take(): PendingRecord[] {
    const records: PendingRecord[] = [];
    let bytes = 0;
    for (const [instance, record] of this.#pending) {
      if (bytes > 0 && bytes + record.bytes > MAX_GROUP_BYTES) break;
      bytes += record.bytes;
      records.push(record);
      this.#pending.delete(instance);
    }
    return records;
  }

  async #write(taken: readonly PendingRecord[]): Promise<void> {
    const records = taken.filter((record) => {
      const { fenced } = record.instance;
      if (fenced !== null) record.done.reject(fenced);
      return fenced === null;
    });
    if (records.length === 0) return;
    const group = await this.#encode(records);
    // Callers of the next groups have waited for this one.
    const deadline = (records[0]?.createdAt ?? 0) + MAX_WAIT_MS;
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#send(group, deadline);
      if (outcome === "settled") return;
      if (performance.now() > deadline || this.#isHopeless) throw outcome;
      await sleep(fullJitterDelay(attempt, RETRY));
    }
  }

  async #encode(records: readonly PendingRecord[]): Promise<Group> {
    const { compressor } = this.#options;
    compressor.begin();
    for (const record of records) {
      const { pageBytes, instance, commits, bytes } = record;
      const room = compressor.room(maxRawBytes(bytes));
      compressor.add(
        bytes === 0
          ? writeEmptyRecord(pageBytes, instance.databasePages, room)
          : writeRawRecord(this.#frames.read(commits), pageBytes, room),
      );
    }
    if (this.#pending.size === 0) this.#frames.clear();
    const { stored, lengths } = await compressor.finish();
    let at = 0;
    const rows = records.map(({ instance }, i): NewRecord => {
      const data = stored.subarray(at, at + (lengths[i] ?? 0));
      at += data.length;
      const { template, id, epoch, node, head } = instance;
      const common = { id, epoch, node, seq: head + 1 };
      return template === null
        ? { ...common, kind: KINDS.pages, data }
        : { ...common, kind: KINDS.first, data: Buffer.concat([template, data]) };
    });
    const hasFirst = records.some(({ instance }) => instance.template !== null);
    return { records, rows, bytes: hasFirst ? Buffer.concat(rows.map(({ data }) => data)) : stored };
  }

  /** Returns the error if the server has rolled the group back, and it may be sent again. */
  async #send(group: Group, deadline: number): Promise<"settled" | Error> {
    const { history, figures } = this.#options;
    let connection: StoreClient | null = null;
    let written: ReadonlySet<number>;
    try {
      connection = await this.#connect();
      written = await history.append(connection, group.rows, group.bytes);
    } catch (error) {
      // Without a connection nothing was sent.
      if (connection === null || isRetryable(error)) return toError(error);
      this.#drop();
      figures.unknownOutcomes += 1;
      await this.#resolve(group, error, deadline);
      return "settled";
    }
    figures.appends += 1;
    figures.records += group.rows.length;
    figures.bytes += group.bytes.length;
    const refused: PendingRecord[] = [];
    group.records.forEach((record, i) => {
      if (written.has(record.instance.id)) this.#acknowledge(record, group, i);
      else refused.push(record);
    });
    if (refused.length > 0) await this.#refuse(refused);
    return "settled";
  }

  #acknowledge(record: PendingRecord, { rows }: Group, i: number): void {
    const { instance } = record;
    const row = rows[i];
    if (row !== undefined) {
      instance.head = row.seq;
      instance.mark = markOf(row.kind, row.data);
    }
    instance.template = null;
    instance.logRecords += 1;
    instance.logBytes += row?.data.length ?? 0;
    const raw = this.#options.compressor.rawOf(i);
    const size = { from: instance.databasePages, to: databasePagesOf(raw) };
    const { dirtyParts } = instance;
    if (dirtyParts !== null) eachPart(pagesOf(raw), size, record.pageBytes, (part) => dirtyParts.add(part));
    instance.databasePages = size.to;
    record.isDurable = true;
    record.done.resolve();
    instance.open?.acknowledged();
  }

  /** Reads what became of a group whose answer did not arrive (invariant 5 of `ownership.ts`). */
  async #resolve(group: Group, cause: unknown, deadline: number): Promise<void> {
    const states = await this.#readStates(group.records, deadline);
    group.records.forEach((record, i) => {
      const state = states?.get(record.instance.id);
      const seq = group.rows[i]?.seq ?? 0;
      if (record.instance.isOwnedIn(state) && state.head === seq) this.#acknowledge(record, group, i);
      else this.#fence(record, states === null ? "unknown" : this.#reasonOf(record.instance, state), cause);
    });
  }

  /** Null if the server does not answer in time. */
  async #readStates(
    records: readonly PendingRecord[],
    deadline: number,
  ): Promise<Map<number, InstanceState> | null> {
    const { history } = this.#options;
    for (let attempt = 1; ; attempt++) {
      if (this.#isHopeless) return null;
      try {
        // What is read must be on the standby, too.
        await history.barrier();
        return await history.readStates(records.map(({ instance }) => instance.id));
      } catch {
        if (performance.now() > deadline) return null;
      }
      await sleep(fullJitterDelay(attempt, RETRY));
    }
  }

  async #refuse(records: readonly PendingRecord[]): Promise<void> {
    this.#options.figures.refusals += records.length;
    const states = await this.#readStates(records, performance.now());
    for (const record of records)
      this.#fence(
        record,
        states === null ? "taken" : this.#reasonOf(record.instance, states.get(record.instance.id)),
      );
  }

  #reasonOf(instance: HeldInstance, state: InstanceState | undefined): FenceReason {
    if (!instance.isOwnedIn(state)) return "taken";
    if (state.head >= instance.head) return "unknown";
    if (instance.fenced === null) this.#options.figures.lostRecords += instance.head - state.head;
    return "lost";
  }

  #fence(record: PendingRecord, reason: FenceReason, cause?: unknown): void {
    const { instance } = record;
    const error = instance.fence(reason, cause);
    this.#options.onFenced(instance, reason, cause);
    record.done.reject(error);
  }

  async #connect(): Promise<StoreClient> {
    if (this.#connection !== null && !this.#connection.isBroken) return this.#connection;
    this.#drop();
    const connection = await this.#options.history.connections.open();
    if (this.#hasConnected) await this.#compareAll();
    this.#hasConnected = true;
    this.#connection = connection;
    return connection;
  }

  async #compareAll(): Promise<void> {
    const { history, heldInstances, onFenced } = this.#options;
    const held = heldInstances();
    for (let i = 0; i < held.length; i += MAX_COMPARED) {
      const some = held.slice(i, i + MAX_COMPARED);
      const states = await history.readStates(some.map(({ id }) => id));
      for (const instance of some) {
        const state = states.get(instance.id);
        if (instance.isOwnedIn(state) && state.head >= instance.head) continue;
        const reason = this.#reasonOf(instance, state);
        instance.fence(reason);
        onFenced(instance, reason);
      }
    }
  }

  get #isHopeless(): boolean {
    return this.#options.cutOffMs() > MAX_WAIT_MS;
  }

  /** A statement on a connection that is lost without a sign would end much later. */
  #endLongWait(): void {
    if (this.#flushing === null) return;
    if (this.#isHopeless || this.lagMs > MAX_WAIT_MS) this.#options.history.connections.reconnect();
  }

  #drop(): void {
    const connection = this.#connection;
    this.#connection = null;
    if (connection !== null) void this.#options.history.connections.end(connection);
  }
}

/** statement_completion_unknown, of servers that are like PostgreSQL. */
const OUTCOME_UNKNOWN = "40003";

/** The server has rolled the statement back, and may take it later: no room, a conflict of transactions, or a time limit. */
function isRetryable(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  if (!isStatementError(error) || typeof code !== "string") return false;
  if (isLocked(error) || code === "57014") return true;
  return code.startsWith("53") || (code.startsWith("40") && code !== OUTCOME_UNKNOWN);
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
