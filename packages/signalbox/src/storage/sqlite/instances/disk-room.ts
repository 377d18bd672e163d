/**
 * Whether the disk has room for what instances write. Once it has not, nothing more is begun until it has again: a turn that is refused at its
 * first write leaves nothing behind, while one that is stopped in the middle costs its instance a start, a log line and a wait.
 *
 * Invariants:
 * 1. A failure is reported to `onStall` once each time the disk fills up, not once for each of those who meet it.
 * 2. The disk is looked at again by itself, whether or not anybody wants to write.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repeat, type Repetition } from "../../../core/repeat.ts";
import { explainFailure, isFullDisk } from "../storage-failure.ts";

const PROBE_MS = 500;
/** What a webhook of the usual size writes to the log, to the journal and later to the file. */
const PROBE = Buffer.alloc(64 * 1024);
const PROBE_FILE = "room";

export class DiskRoom {
  readonly #folder: string;
  readonly #onStall: (error: Error) => void;
  #full: Error | null = null;
  #isJournalStalled = false;
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

  journalStalled(error: Error): void {
    this.#isJournalStalled = true;
    this.#note(error);
  }

  journalWrites(): void {
    this.#isJournalStalled = false;
    this.#cleared();
  }

  async close(): Promise<void> {
    await this.#probing?.stop();
  }

  #note(error: Error): void {
    if (this.#full !== null) return;
    this.#full = error;
    this.#onStall(error);
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
    if (!this.#isJournalStalled) this.#cleared();
  }

  #cleared(): void {
    this.#full = null;
    // Not waited for: the probe itself may be what got here.
    void this.#probing?.stop();
    this.#probing = null;
  }
}
