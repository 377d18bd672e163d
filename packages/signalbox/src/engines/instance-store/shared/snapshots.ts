/**
 * Snapshots: the changed parts of a database go to PostgreSQL, so that a restore needs neither all records nor the local file. Then the records
 * before the snapshot are deleted, a minute later (invariant 7 of `ownership.ts`).
 *
 * A snapshot is written when the records after the last one are as large as the parts, so that snapshots write at most as much as records do.
 */
import { read } from "node:fs";
import { promisify } from "node:util";
import { repeat, type Repetition } from "../../../core/repeat.ts";
import { WAL_HEADER_BYTES } from "../wal/wal-reader.ts";
import type { HeldInstance } from "./held-instance.ts";
import type { History, SweptRange } from "./history.ts";
import { PART_BYTES } from "./record.ts";
import { toPart } from "./restore.ts";

const MIN_LOG_BYTES = 256 * 1024;
/** A restore reads at most so many records. */
const MAX_LOG_RECORDS = 256;
/** Much longer than a statement may take. */
export const GRACE_MS = 60_000;
const SWEEP_MS = 5000;
const MAX_RANGES = 256;
const FRAME_HEADER_BYTES = 24;
const WAL_PIECE_BYTES = 1024 * 1024;
const readAt = promisify(read);

/** The files of an open database. */
export interface DatabaseFiles {
  readonly main: number;
  readonly wal: number;
  /** The part of the WAL that belongs to the snapshot. */
  readonly walEnd: number;
}

export interface SnapshotsOptions {
  readonly onError: (error: unknown) => void;
  readonly figures: { compactions: number };
  /** For tests: how long records are kept after a snapshot. */
  readonly graceMs?: number | undefined;
}

interface Expired {
  readonly history: History;
  readonly range: SweptRange;
  readonly dueAt: number;
}

export function isSnapshotDue({ logBytes, logRecords, partBytes }: HeldInstance): boolean {
  return logBytes > Math.max(MIN_LOG_BYTES, partBytes) || logRecords >= MAX_LOG_RECORDS;
}

export class Snapshots {
  readonly #options: SnapshotsOptions;
  #expired: Expired[] = [];
  readonly #sweeping: Repetition;

  constructor(options: SnapshotsOptions) {
    this.#options = options;
    this.#sweeping = repeat(SWEEP_MS, () => this.sweep(), options.onError);
  }

  /** Never rejects. The caller keeps the files as they are until it resolves. */
  async write(instance: HeldInstance, files: DatabaseFiles, pageBytes: number): Promise<void> {
    // PostgreSQL would refuse it, unless it is another server than the one that has refused the instance.
    if (instance.fenced !== null) return;
    const { dirtyParts, head, databasePages, logBytes, logRecords } = instance;
    const changed = dirtyParts;
    instance.dirtyParts = new Set();
    try {
      const partBytes = await writeSnapshot(instance, {
        seq: head,
        databasePages,
        pageBytes,
        changed,
        files,
      });
      if (partBytes === null) return;
      instance.partBytes = partBytes;
      instance.snapSeq = head;
      instance.logBytes -= logBytes;
      instance.logRecords -= logRecords;
      this.#options.figures.compactions += 1;
      this.#expire(instance, head);
    } catch (error) {
      if (instance.fenced !== null) return;
      // Whether the snapshot was written or not, these parts are written by the next one.
      const { dirtyParts: since } = instance;
      instance.dirtyParts = changed === null || since === null ? null : new Set([...changed, ...since]);
      // Not again at the next record: the server may be unavailable.
      instance.logRecords = 0;
      instance.logBytes = 0;
      this.#options.onError(error);
    }
  }

  /** Deletes what has been covered by a snapshot for long enough. */
  async sweep(): Promise<void> {
    const now = performance.now();
    const due = this.#expired.filter(({ dueAt }) => dueAt <= now);
    // A store that cannot be reached keeps its records, and only its own.
    const swept = await Promise.allSettled(
      [...Map.groupBy(due, ({ history }) => history)].map(([history, ofStore]) =>
        this.#sweepStore(history, ofStore),
      ),
    );
    const failed = swept.find(({ status }) => status === "rejected");
    if (failed?.status === "rejected") throw failed.reason;
  }

  async #sweepStore(history: History, due: readonly Expired[]): Promise<void> {
    for (let i = 0; i < due.length; i += MAX_RANGES) {
      const some = due.slice(i, i + MAX_RANGES);
      await history.sweep(some.map(({ range }) => range));
      const done = new Set(some);
      this.#expired = this.#expired.filter((one) => !done.has(one));
    }
  }

  async close(): Promise<void> {
    await this.#sweeping.stop();
  }

  #expire({ history, id, epoch, node, claimSeq }: HeldInstance, upTo: number): void {
    const { graceMs = GRACE_MS } = this.#options;
    this.#expired.push({
      history,
      range: { id, epoch, node, upTo, claimSeq },
      dueAt: performance.now() + graceMs,
    });
  }
}

/** Returns the stored size of all parts, or null if this node is not the owner any more. */
export async function writeSnapshot(
  instance: HeldInstance,
  snapshot: SnapshotContent,
): Promise<number | null> {
  const { seq, databasePages, pageBytes, changed, files } = snapshot;
  const bytes = databasePages * pageBytes;
  const partCount = Math.ceil(bytes / PART_BYTES);
  const numbers = changed === null ? Array.from({ length: partCount }, (_, i) => i) : [...changed];
  const frames = await findFrames(files, pageBytes, databasePages);
  async function* parts() {
    for (const part of numbers.filter((number) => number < partCount)) {
      instance.requireHeld();
      const raw = await readPart(files, frames, { part, bytes, pageBytes });
      yield { part, data: await toPart(raw) };
    }
  }
  const { id, epoch, node, history } = instance;
  return history.snapshot({
    id,
    epoch,
    node,
    seq,
    pages: databasePages,
    pageBytes,
    partCount,
    parts: parts(),
  });
}

export interface SnapshotContent {
  readonly seq: number;
  readonly databasePages: number;
  readonly pageBytes: number;
  /** Null: all parts. */
  readonly changed: ReadonlySet<number> | null;
  readonly files: DatabaseFiles;
}

/** Where the last acknowledged version of each page in the WAL begins. */
async function findFrames(
  { wal, walEnd }: DatabaseFiles,
  pageBytes: number,
  databasePages: number,
): Promise<ReadonlyMap<number, number>> {
  const frames = new Map<number, number>();
  if (walEnd === 0) return frames;
  const frameBytes = FRAME_HEADER_BYTES + pageBytes;
  // The WAL of one large transaction may be as large as the database.
  const pieceBytes = Math.max(1, Math.floor(WAL_PIECE_BYTES / frameBytes)) * frameBytes;
  for (let start = WAL_HEADER_BYTES; start < walEnd; start += pieceBytes) {
    const bytes = await readRange(wal, start, Math.min(pieceBytes, walEnd - start));
    for (let at = 0; at + frameBytes <= bytes.length; at += frameBytes) {
      const page = bytes.readUInt32BE(at);
      if (page <= databasePages) frames.set(page, start + at + FRAME_HEADER_BYTES);
    }
  }
  return frames;
}

async function readPart(
  { main, wal }: DatabaseFiles,
  frames: ReadonlyMap<number, number>,
  { part, bytes, pageBytes }: { readonly part: number; readonly bytes: number; readonly pageBytes: number },
): Promise<Buffer> {
  const start = part * PART_BYTES;
  const raw = await readRange(main, start, Math.min(PART_BYTES, bytes - start));
  // All at once: between two parts the transaction is idle, and may be so for two seconds only.
  const reads: Promise<{ readonly bytesRead: number }>[] = [];
  for (let at = 0; at < raw.length; at += pageBytes) {
    const frame = frames.get((start + at) / pageBytes + 1);
    if (frame !== undefined) reads.push(readAt(wal, raw, at, pageBytes, frame));
  }
  for (const { bytesRead } of await Promise.all(reads))
    if (bytesRead !== pageBytes) throw new Error("the WAL of an open database is shorter than its records");
  return raw;
}

/** Bytes beyond the end of the file are zeros: they are pages that are only in the WAL, or that SQLite never wrote. */
async function readRange(file: number, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length;) {
    const { bytesRead } = await readAt(file, bytes, at, length - at, position + at);
    if (bytesRead === 0) break;
    at += bytesRead;
  }
  return bytes;
}
