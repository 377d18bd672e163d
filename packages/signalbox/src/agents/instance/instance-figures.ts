/** The numbers of one instance's work, while it is in memory: what the index has, and how to count. */
import type { Participant } from "../../engines/turn-runtime/index.ts";
import type { InstanceRef } from "./instance-ref.ts";
import { type Counted, type WorkFigures, NO_WORK, type ProblemIndex } from "./problem-index.ts";

export class InstanceFigures implements Counted, Participant {
  readonly ref: InstanceRef;
  readonly #index: ProblemIndex;
  #written: WorkFigures = NO_WORK;
  /** Null for a resident without such work, and when the database is closed. */
  #read: (() => WorkFigures) | null = null;
  #writing: Promise<void> | null = null;
  #haveLettersChanged = false;

  constructor(index: ProblemIndex, ref: InstanceRef) {
    this.#index = index;
    this.ref = ref;
  }

  /** What the index has. */
  known(figures: WorkFigures): void {
    this.#written = figures;
  }

  /** `read` counts in the database. */
  open(read: () => WorkFigures): void {
    this.#read = read;
  }

  /** The queue or the schedules may have changed. */
  changed(): void {
    if (this.#read !== null) this.#index.countLater(this);
  }

  /** The open transaction changes dead letters. */
  lettersChanged(): void {
    this.#haveLettersChanged = true;
  }

  afterRollback(): void {
    this.#haveLettersChanged = false;
  }

  /** If dead letters have changed, the next sync waits for the write (`pending`). */
  afterCommit(): void {
    if (!this.#haveLettersChanged) return;
    this.#haveLettersChanged = false;
    const writing = this.#index.countNow(this).then(() => {
      if (this.#writing === writing) this.#writing = null;
    });
    this.#writing = writing;
  }

  /** Never rejects. Null if nothing is being written. */
  get pending(): Promise<void> | null {
    return this.#writing;
  }

  /** The instance leaves memory; its database is still open. */
  leave(): void {
    this.#index.leave(this);
    this.#read = null;
  }

  take(): WorkFigures | null {
    if (this.#read === null) return null;
    let figures: WorkFigures;
    try {
      figures = this.#read();
    } catch {
      // A damaged or closed database. The next load counts again.
      return null;
    }
    const { queued, retrying, deadLetters } = this.#written;
    if (figures.queued === queued && figures.retrying === retrying && figures.deadLetters === deadLetters)
      return null;
    this.#written = figures;
    return figures;
  }
}
