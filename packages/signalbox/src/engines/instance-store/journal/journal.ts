/**
 * Makes the commits of all instances durable with one sync: their WAL frames are appended to one file, instead of syncing one file each.
 *
 * The journal is a sequence of segments. Records go to the newest segment. When the newest segment is full, the next one is started, and the full one
 * is retired: every instance named in it is checkpointed, then the segment is removed, or kept to be overwritten by a later one.
 *
 *   created ──full──► retired ──all instances checkpointed──► removed
 *                                                        └──► spare ──overwritten──► created
 *
 * Invariants:
 * 1. A promise resolves only after a sync that covers its record, in a segment whose name is durable. Records of one instance are written in the order
 *    of the calls. All records appended during a sync share the next sync.
 * 2. A segment is removed only after `checkpoint` has resolved for each instance named in it: then the file on disk includes every record of the
 *    segment. Segments are removed oldest first, and each removal is durable before the next one.
 * 3. A segment is created only when the one before it is synced and ends with its last record, so that only the newest segment can end with an
 *    incomplete record or older bytes. A file is overwritten only after its former name is durably gone.
 * 4. A full disk delays records and loses none: they are written again at the same place until the disk has room. Any other failure is final:
 *    `onFailure` ends the process, and no promise resolves afterwards.
 * See docs/decisions/0049.
 */
import { fdatasync, fdatasyncSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { syncFolder } from "../../durable-file/index.ts";
import { isFullDisk } from "../../sqlite-file/index.ts";
import type { FolderSync } from "../folder-sync.ts";
import { RECORD_KINDS, RecordBuffer, type RecordKind, type Template } from "./journal-records.ts";
import { Replay } from "./replay.ts";
import { findSegments, readSegment, Segment } from "./segment.ts";

/** Retired segments; while there are more, the newest segment grows past its size. (Waiting would deadlock: a checkpoint appends records.) */
const MAX_RETIRED = 3;
/** Concurrent checkpoints; each occupies a thread of the pool during its sync. */
const CONCURRENT_CHECKPOINTS = 4;
const BUFFER_BYTES = 64 * 1024;
/** Buffers up to this size are kept: sixty events of 4 KB between two syncs fit. */
const MAX_KEPT_BUFFER_BYTES = 1024 * 1024;
/** Retry interval on a full disk, and when too many files are open. */
const RETRY_MS = 250;

export interface JournalOptions {
  readonly folder: string;
  readonly folderSync: FolderSync;
  /** The default template of new instances. */
  readonly template: Template;
  readonly pathOf: (id: string) => string;
  /** Resolves when the main file of the instance, if one exists, holds all current commits durably. */
  readonly checkpoint: (id: string) => Promise<void>;
  /** Must end the process. */
  readonly onFailure: (error: Error) => void;
  /** The disk is full and records wait; the returned function is called when they are written. */
  readonly onStall: (error: Error) => () => void;
  /** Size at which the next segment is started. */
  readonly segmentBytes: number;
}

/** A record that was appended. */
export interface Entry {
  /** Resolves when a sync covers the record. */
  readonly durable: Promise<void>;
  readonly isDurable: boolean;
}

/** Records that are written and synced together. */
class Batch implements Entry {
  readonly ids = new Set<string>();
  /** Templates that the segment must contain before the records, except the default one; null for none. */
  templates: Set<Template> | null = null;
  readonly done = Promise.withResolvers<void>();
  isDurable = false;

  constructor() {
    // A rejection without a listener would end the process a second time.
    this.done.promise.catch(() => undefined);
  }

  get durable(): Promise<void> {
    return this.done.promise;
  }
}

/** A full segment, or a segment of an earlier process. */
interface RetiredSegment {
  readonly path: string;
  /** Instances to checkpoint. */
  readonly ids: ReadonlySet<string>;
  readonly isReusable: boolean;
}

/** Name of a file that waits to be overwritten. */
const SPARE = "spare";

const datasync = promisify(fdatasync);
const nextLoop = promisify(setImmediate);
const NO_BYTES = Buffer.alloc(0);

export class Journal {
  readonly #options: JournalOptions;
  #segment: Segment | null = null;
  #lastNumber: number;
  #pending: Batch | null = null;
  /** The records of `#pending`. A write copies them to the segment before it returns, so one buffer is enough. */
  readonly #records = new RecordBuffer(BUFFER_BYTES);
  /** Written to the segment, but not synced. */
  #unsynced: Batch[] = [];
  #spareFile: string | null = null;
  #flushing: Promise<void> | null = null;
  #syncing: readonly Batch[] = [];
  /** Set while a batch waits for room on the disk: nothing may be written after it. */
  #endStall: (() => void) | null = null;
  /** Ends when the last retired segment is removed. */
  #retiring: Promise<void> = Promise.resolve();
  #retiredCount = 0;
  #failure: Error | null = null;

  private constructor(options: JournalOptions, lastNumber: number) {
    this.#options = options;
    this.#lastNumber = lastNumber;
  }

  /** Replays the journal of an earlier process. The files, and names, of the instances in `replayed` are not yet synced. */
  static open(options: JournalOptions): { journal: Journal; replayed: ReadonlySet<string> } {
    mkdirSync(options.folder, { recursive: true, mode: 0o700 });
    for (const parent of [dirname(options.folder), dirname(dirname(options.folder))]) syncFolder(parent);
    rmSync(join(options.folder, SPARE), { force: true });
    const found = findSegments(options.folder);
    const replay = new Replay(options.pathOf);
    found.forEach((segment, i) =>
      replay.addSegment(segment.path, readSegment(segment, i === found.length - 1)),
    );
    const replayed = replay.finish();
    const journal = new Journal(options, found.at(-1)?.number ?? 0);
    // The first segment stays until all replayed instances are checkpointed; then none of the others is needed.
    found.forEach(({ path }, i) =>
      journal.#retire({ path, ids: i === 0 ? replayed : new Set(), isReusable: false }),
    );
    return { journal, replayed };
  }

  /** `key` is the bytes of `id`. */
  created(id: string, key: Buffer, template: Template): Promise<void> {
    const isDefault = template === this.#options.template;
    const entry = this.#append(RECORD_KINDS.created, id, key, 0, isDefault ? NO_BYTES : template.id);
    if (!isDefault && this.#pending !== null) (this.#pending.templates ??= new Set()).add(template);
    return entry.durable;
  }

  destroyed(id: string, key: Buffer): Promise<void> {
    return this.#append(RECORD_KINDS.destroyed, id, key, 0, NO_BYTES).durable;
  }

  /** Copies the frames before it returns. */
  committed(id: string, key: Buffer, pageBytes: number, frames: Buffer): Entry {
    return this.#append(RECORD_KINDS.frames, id, key, pageBytes, frames);
  }

  /** Writes pending records at once, without a sync: they survive the end of the process. On a full disk they wait as usual. */
  writeNow(): void {
    if (this.#pending === null || this.#endStall !== null || this.#failure !== null) return;
    try {
      this.#segment ??= this.#createSegment();
      this.#writePending(this.#segment);
    } catch (error) {
      if (!isFullDisk(error)) this.#fail(error);
    }
  }

  /** Writes and syncs pending records without returning to the event loop; false if that is not possible now. */
  syncNow(): boolean {
    const segment = this.#segment;
    if (segment?.isNameDurable !== true || this.#endStall !== null || this.#failure !== null) return false;
    try {
      this.#writePending(segment);
      fdatasyncSync(segment.fd);
    } catch (error) {
      if (!isFullDisk(error)) this.#fail(error);
      return false;
    }
    this.#release(this.#unsynced.splice(0));
    return true;
  }

  /** Checkpoints all instances and removes all segments. Nothing may be appended afterwards. */
  async close(): Promise<void> {
    while (this.#flushing !== null) await this.#flushing;
    if (this.#failure !== null) return;
    this.#endSegment(false);
    await this.#retiring;
    if (this.#spareFile !== null) rmSync(this.#spareFile, { force: true });
  }

  #append(kind: RecordKind, id: string, key: Buffer, pageBytes: number, payload: Buffer): Entry {
    if (this.#failure !== null) return failedEntry(this.#failure);
    this.#pending ??= this.#newBatch();
    this.#records.add(kind, key, pageBytes, payload);
    this.#pending.ids.add(id);
    // Instances whose turns end in this iteration of the event loop share the sync.
    this.#flushing ??= new Promise((resolve) => setImmediate(() => resolve(this.#flush())));
    return this.#pending;
  }

  #newBatch(): Batch {
    this.#records.clear(MAX_KEPT_BUFFER_BYTES);
    return new Batch();
  }

  async #flush(): Promise<void> {
    try {
      while (this.#pending !== null || this.#unsynced.length > 0) {
        const segment = await this.#segmentWithRoom();
        await this.#whenDiskHasRoom(() => this.#writePending(segment));
        const batches = this.#unsynced.splice(0);
        this.#syncing = batches;
        await this.#sync(segment);
        this.#release(batches);
        // Events that arrived during the sync are handled first and share the next sync.
        await nextLoop();
        await nextLoop();
      }
    } catch (error) {
      this.#fail(error);
    }
    this.#flushing = null;
  }

  /** Changes nothing if the disk is full and the write throws. */
  #writePending(segment: Segment): void {
    const batch = this.#pending;
    if (batch === null) return;
    if (batch.templates !== null) for (const template of batch.templates) segment.addTemplate(template);
    segment.append(this.#records);
    for (const id of batch.ids) segment.ids.add(id);
    this.#pending = null;
    this.#unsynced.push(batch);
  }

  #release(batches: readonly Batch[]): void {
    for (const batch of batches) {
      batch.isDurable = true;
      batch.done.resolve();
    }
  }

  async #sync(segment: Segment): Promise<void> {
    if (segment.isNameDurable) return datasync(segment.fd);
    await Promise.all([datasync(segment.fd), this.#options.folderSync.sync(this.#options.folder)]);
    segment.isNameDurable = true;
  }

  async #segmentWithRoom(): Promise<Segment> {
    const isFull = this.#segment !== null && this.#segment.length >= this.#options.segmentBytes;
    const canEnd = this.#unsynced.length === 0 && this.#retiredCount < MAX_RETIRED;
    // A segment that grew far beyond its size would occupy that much of the disk for good.
    const isReusable = (this.#segment?.length ?? 0) <= 2 * this.#options.segmentBytes;
    if (isFull && canEnd) this.#endSegment(isReusable);
    // Assigned in the callback, not after the await: `writeNow` may run in between and would create a second segment (invariant 3).
    return this.#segment ?? this.#whenDiskHasRoom(() => (this.#segment ??= this.#createSegment()));
  }

  #createSegment(): Segment {
    const { folder, template, segmentBytes } = this.#options;
    this.#lastNumber += 1;
    const spare = this.#spareFile;
    this.#spareFile = null;
    return Segment.create({ folder, number: this.#lastNumber, template, bytes: segmentBytes, spare });
  }

  async #whenDiskHasRoom<T>(write: () => T): Promise<T> {
    for (;;) {
      try {
        const result = write();
        this.#endStall?.();
        this.#endStall = null;
        return result;
      } catch (error) {
        if (!isFullDisk(error)) throw error;
        this.#endStall ??= this.#options.onStall(error);
        await sleep(RETRY_MS);
      }
    }
  }

  /** All records of the segment are synced; the next record starts another segment. */
  #endSegment(isReusable: boolean): void {
    const segment = this.#segment;
    if (segment === null) return;
    this.#segment = null;
    segment.end();
    this.#retire({ path: segment.path, ids: segment.ids, isReusable });
  }

  /** One segment after the other (invariant 2). */
  #retire(segment: RetiredSegment): void {
    this.#retiredCount += 1;
    this.#retiring = this.#retiring.then(() => this.#remove(segment));
  }

  async #remove({ path, ids, isReusable }: RetiredSegment): Promise<void> {
    const { checkpoint, folder, folderSync } = this.#options;
    const rest = ids.values();
    const checkpointRest = async () => {
      for (const id of rest) if (this.#failure === null) await whenPossible(() => checkpoint(id));
    };
    try {
      await Promise.all(Array.from({ length: CONCURRENT_CHECKPOINTS }, checkpointRest));
      if (this.#failure !== null) return;
      const spare = isReusable && this.#spareFile === null ? join(folder, SPARE) : null;
      if (spare === null) rmSync(path);
      else renameSync(path, spare);
      await folderSync.sync(folder);
      // Not earlier: a segment that is overwritten under its former name would count as damaged (invariant 3).
      this.#spareFile ??= spare;
    } catch (error) {
      this.#fail(error);
    }
    this.#retiredCount -= 1;
  }

  #fail(cause: unknown): void {
    if (this.#failure !== null) return;
    const failure = new Error("the journal of the instances failed; unacknowledged commits may be lost", {
      cause,
    });
    this.#failure = failure;
    for (const batch of [...this.#syncing, ...this.#unsynced]) batch.done.reject(failure);
    this.#pending?.done.reject(failure);
    this.#unsynced = [];
    this.#pending = null;
    this.#options.onFailure(failure);
  }
}

/** Retries on a full disk and with too many open files; the records stay in the journal meanwhile. */
async function whenPossible(work: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code !== "EMFILE" && code !== "ENFILE" && !isFullDisk(error)) throw error;
      await sleep(RETRY_MS);
    }
  }
}

function failedEntry(failure: Error): Entry {
  const durable = Promise.reject(failure);
  // The caller may ignore the promise.
  durable.catch(() => undefined);
  return { durable, isDurable: false };
}
