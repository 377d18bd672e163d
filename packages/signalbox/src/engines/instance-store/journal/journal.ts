/**
 * Makes the commits of all instances durable with one sync: their frames are appended to one file, instead of syncing a file each. What an
 * instance's own files hold need not be on the disk until the journal drops it.
 *
 * The journal is a row of segments. Records go to the newest; when that is full, the next one follows, and once everything the full one tells of
 * is on the disk in the instances' own files (it is *settled*), it is removed, or its file is kept for a later one to be written over it.
 *
 * Invariants:
 * 1. A promise resolves only after a sync that covers its record, in a segment whose name is synced. Records of one instance are written in
 *    the order they came; one sync serves all that came while the one before it ran.
 * 2. A segment is removed only after `settle` has resolved for each instance named in it: then the instance's file on the disk is as of some moment
 *    after its last record here, and what came later is in later segments. Oldest first, and the removal is synced before the next one goes.
 * 3. A segment gets its first record only when all of the one before it is synced and nothing follows its last record, so only the newest can end in
 *    half a record, or in something older. A file is written over only when the disk no longer has it under its former name.
 * 4. A full disk delays records and loses none: they are written again at the same place until there is room. Any other failure is
 *    final: `onFailure` ends the process, and nothing resolves any more.
 */
import { fdatasync, fdatasyncSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { isFullDisk, syncFolder } from "../../sqlite-file/index.ts";
import type { FolderSync } from "../folder-sync.ts";
import { RECORD_KINDS, RecordBuffer, type RecordKind, type Template } from "./record.ts";
import { Replay } from "./replay.ts";
import { findSegments, readSegment, Segment } from "./segment.ts";

/** Segments that may wait to be settled; while there are more, the newest grows past its size. (Waiting would lock up: settling appends.) */
const MAX_UNSETTLED = 3;
/** Instances settled at the same time; each occupies a thread of the pool while it syncs. */
const SETTLED_AT_ONCE = 4;
const BUFFER_BYTES = 64 * 1024;
/** Buffers are kept up to this size: what sixty webhooks of 4 KB write between two syncs. */
const MAX_KEPT_BUFFER_BYTES = 1024 * 1024;
/** A full disk, and too many open files, are looked at again after this. */
const RETRY_MS = 250;

export interface JournalOptions {
  readonly folder: string;
  readonly folderSync: FolderSync;
  /** What instances are created as, unless `created` is told of another. */
  readonly template: Template;
  readonly pathOf: (id: string) => string;
  /** Resolves when everything the instance has committed by now is on the disk in its own file, or it has none any more. */
  readonly settle: (id: string) => Promise<void>;
  /** Must end the process. */
  readonly onFailure: (error: Error) => void;
  /** The disk is full and records wait; called once each time that begins. */
  readonly onStall: (error: Error) => void;
  /** Those records are written. */
  readonly onRoom: () => void;
  /** A segment of this size is followed by the next. */
  readonly segmentBytes: number;
}

/** A record that was handed over. */
export interface Entry {
  /** Resolves when a sync covers it. */
  readonly durable: Promise<void>;
  readonly isDurable: boolean;
}

/** Records that are written and synced together. */
class Batch implements Entry {
  readonly records: RecordBuffer;
  readonly ids = new Set<string>();
  /** What its records need in the segment before them, beside the default one; null for nothing. */
  templates: Set<Template> | null = null;
  readonly done = Promise.withResolvers<void>();
  isDurable = false;

  constructor(records: RecordBuffer) {
    this.records = records;
    // Whoever waits hears of a failure; that nobody does must not end the process in a second way.
    this.done.promise.catch(() => undefined);
  }

  get durable(): Promise<void> {
    return this.done.promise;
  }
}

/** What is left to settle: a full segment, or one of an earlier process. */
interface Unsettled {
  readonly path: string;
  readonly touched: ReadonlySet<string>;
  /** Its file may be written over. */
  readonly isReusable: boolean;
}

/** Name of a settled segment that waits to be written over. */
const SPARE = "spare";

const datasync = promisify(fdatasync);
const nextLoop = promisify(setImmediate);
const NO_BYTES = Buffer.alloc(0);

export class Journal {
  readonly #options: JournalOptions;
  #segment: Segment | null = null;
  #lastNumber: number;
  #pending: Batch | null = null;
  /** Written to the segment, but not yet synced. */
  #unsynced: Batch[] = [];
  #spareBuffer: RecordBuffer | null = null;
  #spareFile: string | null = null;
  #flushing: Promise<void> | null = null;
  #syncing: readonly Batch[] = [];
  /** A batch waits for room on the disk: nothing may be written past it. */
  #isStalled = false;
  /** Settles one segment after the other. */
  #settling: Promise<void> = Promise.resolve();
  #unsettledCount = 0;
  #failure: Error | null = null;

  private constructor(options: JournalOptions, lastNumber: number) {
    this.#options = options;
    this.#lastNumber = lastNumber;
  }

  /** Replays what an earlier process left behind. `replayed` are the instances whose files, and names, are not yet synced. */
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
    // The first one stays until every replayed instance is settled; then nothing of the others is needed.
    found.forEach(({ path }, i) =>
      journal.#settleLater({ path, touched: i === 0 ? replayed : new Set(), isReusable: false }),
    );
    return { journal, replayed };
  }

  created(id: string, key: Buffer, template: Template): Promise<void> {
    const isDefault = template === this.#options.template;
    const entry = this.#append(RECORD_KINDS.created, id, key, 0, isDefault ? NO_BYTES : template.id);
    if (!isDefault && this.#pending !== null) (this.#pending.templates ??= new Set()).add(template);
    return entry.durable;
  }

  destroyed(id: string, key: Buffer): Promise<void> {
    return this.#append(RECORD_KINDS.destroyed, id, key, 0, NO_BYTES).durable;
  }

  /** `key` is the id's bytes. The frames are copied before this returns. */
  committed(id: string, key: Buffer, pageBytes: number, frames: Buffer): Entry {
    return this.#append(RECORD_KINDS.frames, id, key, pageBytes, frames);
  }

  /**
   * Writes what is pending at once, so that it survives the end of the process; the machine's, too, only when its promise resolves. A disk that is
   * full makes it wait as usual.
   */
  writeNow(): void {
    if (this.#pending === null || this.#isStalled || this.#failure !== null) return;
    try {
      this.#segment ??= this.#nextSegment();
      this.#writePending(this.#segment);
    } catch (error) {
      if (!isFullDisk(error)) this.#fail(error);
    }
  }

  /** Writes and syncs what is pending without giving the event loop back; false if that cannot be done right now. */
  flushNow(): boolean {
    const segment = this.#segment;
    if (segment?.isNameSynced !== true || this.#isStalled || this.#failure !== null) return false;
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

  /** Settles and removes everything. Nothing may be appended any more. */
  async close(): Promise<void> {
    while (this.#flushing !== null) await this.#flushing;
    if (this.#failure !== null) return;
    this.#endSegment(false);
    await this.#settling;
    if (this.#spareFile !== null) rmSync(this.#spareFile, { force: true });
  }

  #append(kind: RecordKind, id: string, key: Buffer, pageBytes: number, payload: Buffer): Entry {
    if (this.#failure !== null) return failedEntry(this.#failure);
    this.#pending ??= this.#newBatch();
    this.#pending.records.add(kind, key, pageBytes, payload);
    this.#pending.ids.add(id);
    // After the other instances whose turns have ended meanwhile: they share the sync.
    this.#flushing ??= new Promise((resolve) => setImmediate(() => resolve(this.#flush())));
    return this.#pending;
  }

  #newBatch(): Batch {
    const records = this.#spareBuffer ?? new RecordBuffer(BUFFER_BYTES);
    this.#spareBuffer = null;
    records.clear(MAX_KEPT_BUFFER_BYTES);
    return new Batch(records);
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
        // Events that came meanwhile are dealt with first, and share the next sync.
        await nextLoop();
        await nextLoop();
      }
    } catch (error) {
      this.#fail(error);
    }
    this.#flushing = null;
  }

  /** Throws, with everything as it was, when the disk does not take it. */
  #writePending(segment: Segment): void {
    const batch = this.#pending;
    if (batch === null) return;
    if (batch.templates !== null) for (const template of batch.templates) segment.provide(template);
    segment.append(batch.records);
    for (const id of batch.ids) segment.touched.add(id);
    this.#pending = null;
    this.#unsynced.push(batch);
  }

  #release(batches: readonly Batch[]): void {
    for (const batch of batches) {
      batch.isDurable = true;
      batch.done.resolve();
      this.#spareBuffer = batch.records;
    }
  }

  async #sync(segment: Segment): Promise<void> {
    if (segment.isNameSynced) return datasync(segment.fd);
    await Promise.all([datasync(segment.fd), this.#options.folderSync.sync(this.#options.folder)]);
    segment.isNameSynced = true;
  }

  async #segmentWithRoom(): Promise<Segment> {
    const isFull = this.#segment !== null && this.#segment.length >= this.#options.segmentBytes;
    const canEnd = this.#unsynced.length === 0 && this.#unsettledCount < MAX_UNSETTLED;
    // One that had to grow far beyond its size would hold on to that much of the disk.
    const isReusable = (this.#segment?.length ?? 0) <= 2 * this.#options.segmentBytes;
    if (isFull && canEnd) this.#endSegment(isReusable);
    // Kept where it is made, not after the wait: `writeNow` may come in between and would make another one, and of two the older is damage.
    return this.#segment ?? this.#whenDiskHasRoom(() => (this.#segment ??= this.#nextSegment()));
  }

  #nextSegment(): Segment {
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
        if (this.#isStalled) this.#options.onRoom();
        this.#isStalled = false;
        return result;
      } catch (error) {
        if (!isFullDisk(error)) throw error;
        if (!this.#isStalled) this.#options.onStall(error);
        this.#isStalled = true;
        await sleep(RETRY_MS);
      }
    }
  }

  /** Everything in the segment is synced; the next record starts another one. */
  #endSegment(isReusable: boolean): void {
    const segment = this.#segment;
    if (segment === null) return;
    this.#segment = null;
    segment.end();
    this.#settleLater({ path: segment.path, touched: segment.touched, isReusable });
  }

  #settleLater(segment: Unsettled): void {
    this.#unsettledCount += 1;
    this.#settling = this.#settling.then(() => this.#settle(segment));
  }

  async #settle({ path, touched, isReusable }: Unsettled): Promise<void> {
    const { settle, folder, folderSync } = this.#options;
    const rest = touched.values();
    const settleRest = async () => {
      for (const id of rest) if (this.#failure === null) await whenPossible(() => settle(id));
    };
    try {
      await Promise.all(Array.from({ length: SETTLED_AT_ONCE }, settleRest));
      if (this.#failure !== null) return;
      const spare = isReusable && this.#spareFile === null ? join(folder, SPARE) : null;
      if (spare === null) rmSync(path);
      else renameSync(path, spare);
      await folderSync.sync(folder);
      // Not before: written over while the disk has it under its old name, it would be taken for damage.
      this.#spareFile ??= spare;
    } catch (error) {
      this.#fail(error);
    }
    this.#unsettledCount -= 1;
  }

  #fail(cause: unknown): void {
    if (this.#failure !== null) return;
    const failure = new Error(
      "the journal of the agents' instances failed; what was not acknowledged may be lost",
      { cause },
    );
    this.#failure = failure;
    for (const batch of [...this.#syncing, ...this.#unsynced]) batch.done.reject(failure);
    this.#pending?.done.reject(failure);
    this.#unsynced = [];
    this.#pending = null;
    this.#options.onFailure(failure);
  }
}

/** Too many open files and a full disk are a matter of time, and what is to be settled stays in the journal meanwhile. */
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
  // Whoever waits hears of it; nobody has to wait.
  durable.catch(() => undefined);
  return { durable, isDurable: false };
}
