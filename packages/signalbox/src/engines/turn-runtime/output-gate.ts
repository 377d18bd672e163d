/**
 * Holds every output until the writes it depends on are durable: steps 3 and 4 of `TurnRuntime` (invariants 3, 4 and 5 of the README).
 *
 * An output passes two stages, in order of production:
 *   held     by the segment that produced it. A commit passes the outputs on, a rollback drops them.
 *   waiting  for a sync that begins after the last commit before the output. One sync serves all commits and outputs before it.
 */

import { afterMicrotasks } from "./after-microtasks.ts";

export interface Output {
  release(): void;
  /** The output will never leave: its segment was rolled back, or the sync failed. */
  drop(error: Error): void;
}

export class RolledBackError extends Error {
  override readonly name = "RolledBackError";

  constructor() {
    super("the turn was rolled back before the output left");
  }
}

export interface OutputGateOptions {
  /** Commits what is pending and makes all commits durable. May throw. No segment is open when it is called. */
  readonly sync: () => Promise<void>;
  /**
   * For a database that another process may take over: null if what was read may leave now, otherwise it may leave when the promise resolves. A
   * rejection counts as a failed sync.
   */
  readonly confirm?: (() => Promise<void> | null) | undefined;
  /** The last output has left. */
  readonly onIdle: () => void;
  /** A sync failed: from now on no output leaves. */
  readonly onFailure?: (error: Error) => void;
}

interface WaitingOutput {
  /** Number of the last commit before the output. */
  readonly commit: number;
  readonly output: Output;
}

export class OutputGate {
  readonly #options: OutputGateOptions;
  /** Outputs of the running segment; null when there are none and no transaction is open. */
  #held: Output[] | null = null;
  #hasTransaction = false;
  #waiting: WaitingOutput[] = [];
  /** Numbers of the last commit, of the last commit that is durable, and of the last one that the running sync covers. */
  #committed = 0;
  #durable = 0;
  #covered = 0;
  /** True from the moment a sync is scheduled until no output waits. */
  #isSyncing = false;
  #failure: Error | null = null;
  /** Creates the error for outputs after the close; null before. */
  #closed: (() => Error) | null = null;
  /** A sync waits for the end of the open transaction. */
  #isSyncDelayed = false;

  constructor(options: OutputGateOptions) {
    this.#options = options;
  }

  get isIdle(): boolean {
    return !this.#isSyncing && this.#waiting.length === 0 && this.#held === null;
  }

  /** True when a sync will begin that covers every commit so far. */
  get isSyncDue(): boolean {
    return this.#isSyncing && (this.#waiting.at(-1)?.commit ?? 0) > this.#covered;
  }

  /** For the outcome of a turn: it depends on what has been written so far, and on no later write. */
  send(output: Output): void {
    if (this.#failure !== null) output.drop(this.#failure);
    else if (this.#held !== null) this.#held.push(output);
    else if (this.#durable !== this.#committed || this.#waiting.length > 0) this.#wait(output);
    else {
      const confirmed = this.#options.confirm?.() ?? null;
      if (confirmed === null) output.release();
      else this.#waitFor(confirmed, output);
    }
  }

  /** For outputs of a turn's code: a later write of the same segment may be what the output is about, so it leaves with the segment. */
  sendWithSegment(output: Output): void {
    if (this.#closed !== null) throw this.#closed();
    if (this.#held === null) {
      const held: Output[] = [];
      this.#held = held;
      afterMicrotasks(() => {
        if (this.#held === held) this.segmentEnded();
        if (this.isIdle) this.#options.onIdle();
      });
    }
    this.#held.push(output);
  }

  /** Resolves when everything that the running segment has done so far is durable. */
  pass(): Promise<void> {
    return new Promise((resolve, reject) => this.sendWithSegment({ release: resolve, drop: reject }));
  }

  /** Resolves when everything that was sent before has left or was dropped. */
  whenEmpty(): Promise<void> {
    return new Promise((resolve) => this.send({ release: resolve, drop: () => resolve() }));
  }

  /** The runtime has ended. What was sent before leaves when it is durable; code that outlived the runtime cannot send. */
  close(gone: () => Error): void {
    this.#closed = gone;
  }

  transactionOpened(): void {
    this.#hasTransaction = true;
    this.#held ??= [];
  }

  /** Counts a change that no segment made, such as the creation of the database: later outputs depend on it. */
  countCommit(): void {
    this.#committed += 1;
  }

  transactionCommitted(): void {
    this.countCommit();
    for (const output of this.#takeHeld()) this.#wait(output);
  }

  transactionRolledBack(): void {
    const failure = forEach(this.#takeHeld(), (output) => output.drop(new RolledBackError()));
    if (failure !== null) throw failure.error;
  }

  /** The running code is at an await or has ended. If its transaction is still open, the end of the transaction decides. */
  segmentEnded(): void {
    if (this.#hasTransaction || this.#held === null) return;
    for (const output of this.#takeHeld()) this.send(output);
  }

  #takeHeld(): readonly Output[] {
    const held = this.#held ?? [];
    this.#held = null;
    this.#hasTransaction = false;
    if (this.#isSyncDelayed) {
      this.#isSyncDelayed = false;
      this.#syncLater();
    }
    return held;
  }

  #wait(output: Output): void {
    if (this.#failure !== null) {
      output.drop(this.#failure);
      return;
    }
    this.#waiting.push({ commit: this.#committed, output });
    if (this.#isSyncing) return;
    this.#isSyncing = true;
    this.#syncLater();
  }

  /** The output depends on reads only, and nothing waits before it. */
  #waitFor(confirmed: Promise<void>, output: Output): void {
    this.#waiting.push({ commit: this.#committed, output });
    this.#isSyncing = true;
    this.#covered = this.#committed;
    this.#releaseWhen(confirmed, this.#committed);
  }

  /** In the next iteration of the event loop: turns whose events have already arrived commit first and share the sync. */
  #syncLater(): void {
    setImmediate(() => this.#sync());
  }

  /** Not `async`: every event of every instance passes here, and each promise in between is work for the garbage collector. */
  #sync(): void {
    if (this.#hasTransaction) {
      // One sync follows another directly, or a transaction is kept open over awaits.
      this.#isSyncDelayed = true;
      return;
    }
    const covered = this.#committed;
    this.#covered = covered;
    // Outputs that only read may wait behind the sync of a write that ended before they read: so both a sync and a confirmation.
    let synced: Promise<void>;
    try {
      synced = this.#options.sync();
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (this.#options.confirm === undefined) this.#releaseWhen(synced, covered);
    else
      this.#releaseWhen(
        synced.then(() => this.#options.confirm?.() ?? undefined),
        covered,
      );
  }

  #releaseWhen(ready: Promise<void>, covered: number): void {
    ready.then(
      () => this.#release(covered),
      (error: unknown) => this.#fail(error),
    );
  }

  #release(covered: number): void {
    this.#durable = covered;
    let count = 0;
    while (count < this.#waiting.length && (this.#waiting[count]?.commit ?? 0) <= covered) count++;
    const failure = forEach(this.#waiting.splice(0, count), ({ output }) => output.release());
    if (this.#waiting.length > 0) this.#sync();
    else {
      this.#isSyncing = false;
      this.#options.onIdle();
    }
    if (failure !== null) throw failure.error;
  }

  /** Nothing leaves after a failed sync. */
  #fail(cause: unknown): void {
    const error = cause instanceof Error ? cause : new Error(String(cause));
    this.#failure = error;
    // Before the outputs are dropped: their receivers are told what is certainly not stored.
    this.#options.onFailure?.(error);
    const waiting = this.#waiting;
    this.#waiting = [];
    const failure = forEach(waiting, ({ output }) => output.drop(error));
    if (failure !== null) throw failure.error;
  }
}

/** Calls the function with all of them, also if one throws: an output must not be lost because of another. Returns the first error. */
function forEach<T>(items: readonly T[], call: (item: T) => void): { readonly error: unknown } | null {
  let failure: { readonly error: unknown } | null = null;
  for (const item of items) {
    try {
      call(item);
    } catch (error) {
      failure ??= { error };
    }
  }
  return failure;
}
