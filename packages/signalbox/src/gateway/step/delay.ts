/**
 * The answer of a limit that cannot decide yet, because other nodes share it. The caller waits for `ready` and repeats the same call, which then
 * decides. With SQLite a limit always decides at once.
 */
import type { SignalboxError } from "@signalbox/protocol";

export class Delay {
  /** Never rejects. */
  readonly ready: Promise<void>;

  constructor(ready: Promise<void>) {
    this.ready = ready;
  }
}

/** Null: the call may go on. */
export type Admission = SignalboxError | Delay | null;
