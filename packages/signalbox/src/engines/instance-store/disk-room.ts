/**
 * Whether the disk has room for what instances write. Once it has not, nothing more is begun until it has again: a turn that is refused at its
 * first write leaves nothing behind, while one that is stopped in the middle costs its instance a start, a log line and a wait.
 *
 * Invariants:
 * 1. A failure is reported to `onStall` when the disk fills up, not once for each of those who meet it, and no more than once a minute: room may
 *    come and go.
 * 2. The disk is looked at again by itself, whether or not anybody wants to write. It counts as full for as long as the journal or an instance
 *    that leaves memory waits for room.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repeat, type Repetition } from "../../core/repeat.ts";
import { explainFailure, isFullDisk } from "../sqlite-file/index.ts";

const PROBE_MS = 500;
const REPORT_MS = 60_000;
/** What a webhook of the usual size writes to the log, to the journal and later to the file. */
const PROBE = Buffer.alloc(64 * 1024);
const PROBE_FILE = "room";

export class DiskRoom {
  readonly #folder: string;
  readonly #onStall: (error: Error) => void;
  #full: Error | null = null;
  #isJournalStalled = false;
  #closing = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;
  #probing: Repetition | null = null;

  constructor(folder: string, onStall: (error: Error) => void) {
    this.#folder = folder;
    this.#onStall = onStall;
  }

  get problem(): string | null {
    if (this.#isJournalStalled) return "the disk is full, and the journal waits for room";
    return this.#full === null ? null : "the disk is full";
  }

  /** Throws `storage_unavailable` while there is no room. */
  require(): void {
    if (this.#full !== null) throw explainFailure(this.#full);
  }

  /** Takes note of a failure to write, and gives back what to tell of it. */
  explain(error: unknown): unknown {
    if (isFullDisk(error)) this.#note(error);
    return explainFailure(error);
  }

  /** An instance that leaves memory cannot bring its log to its file yet; whoever wants it waits for that. */
  closingStalled(error: Error): void {
    this.#closing += 1;
    this.#note(error);
  }

  closingGoesOn(): void {
    this.#closing -= 1;
  }

  journalStalled(error: Error): void {
    this.#isJournalStalled = true;
    this.#note(error);
  }

  journalWrites(): void {
    this.#isJournalStalled = false;
    this.#clearIfNobodyWaits();
  }

  async close(): Promise<void> {
    await this.#probing?.stop();
  }

  #note(error: Error): void {
    if (this.#full !== null) return;
    this.#full = error;
    const now = performance.now();
    if (now - this.#reportedAt >= REPORT_MS) {
      this.#reportedAt = now;
      this.#onStall(error);
    }
    // That the probe found no room needs no report: it is known.
    this.#probing ??= repeat(
      PROBE_MS,
      () => this.#probe(),
      () => undefined,
    );
  }

  #probe(): void {
    const file = join(this.#folder, PROBE_FILE);
    try {
      writeFileSync(file, PROBE);
    } finally {
      rmSync(file, { force: true });
    }
    this.#clearIfNobodyWaits();
  }

  #clearIfNobodyWaits(): void {
    if (this.#isJournalStalled || this.#closing > 0) return;
    this.#full = null;
    // Not waited for: the probe itself may be what got here.
    void this.#probing?.stop();
    this.#probing = null;
  }
}
