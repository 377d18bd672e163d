/**
 * Tracks whether the disk is full. While the disk is full no transaction begins: a turn that is refused at its first write leaves nothing to undo,
 * and a turn that fails in the middle costs its instance a restart.
 *
 * Invariants:
 * 1. `onStall` is called when the disk becomes full, at most once a minute.
 * 2. The disk is probed on a timer, whether or not an instance wants to write. The disk counts as full while any writer waits for room.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repeat, type Repetition } from "../../core/repeat.ts";
import { explainFailure, isFullDisk } from "../sqlite-file/index.ts";

const PROBE_MS = 500;
const REPORT_MS = 60_000;
/** More than one event of usual size writes to the WAL, the journal and the database. */
const PROBE = Buffer.alloc(64 * 1024);
const PROBE_FILE = "room";

export class DiskRoom {
  readonly #folder: string;
  readonly #onStall: (error: Error) => void;
  #full: Error | null = null;
  /** Writers that wait for room, described for operators. */
  readonly #waiting = new Set<{ readonly writer: string }>();
  #reportedAt = Number.NEGATIVE_INFINITY;
  #probing: Repetition | null = null;

  constructor(folder: string, onStall: (error: Error) => void) {
    this.#folder = folder;
    this.#onStall = onStall;
  }

  get problem(): string | null {
    if (this.#full === null) return null;
    for (const { writer } of this.#waiting) return `the disk is full, and ${writer} waits for room`;
    return "the disk is full";
  }

  /** Throws `storage_unavailable` while the disk is full. */
  require(): void {
    if (this.#full !== null) throw explainFailure(this.#full);
  }

  /** Records a failed write; returns the error to throw to the caller. */
  explain(error: unknown): unknown {
    if (isFullDisk(error)) this.#setFull(error);
    return explainFailure(error);
  }

  /** A writer retries until the disk has room; the returned function ends the wait. */
  wait(writer: string, error: Error): () => void {
    const entry = { writer };
    this.#waiting.add(entry);
    this.#setFull(error);
    return () => {
      this.#waiting.delete(entry);
      this.#clear();
    };
  }

  async close(): Promise<void> {
    await this.#probing?.stop();
  }

  #setFull(error: Error): void {
    if (this.#full !== null) return;
    this.#full = error;
    const now = performance.now();
    if (now - this.#reportedAt >= REPORT_MS) {
      this.#reportedAt = now;
      this.#onStall(error);
    }
    // A failed probe needs no report: the problem is known.
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
    this.#clear();
  }

  #clear(): void {
    if (this.#waiting.size > 0) return;
    this.#full = null;
    // Not awaited: the caller may be the probe itself.
    void this.#probing?.stop();
    this.#probing = null;
  }
}
