/**
 * Nothing leaves an instance before what it tells of is on stable storage: answers, frames, outgoing requests, messages to other
 * agents. That holds for answers that only read, too: they may have seen a commit that no sync covers yet.
 *
 * Invariants:
 * 1. Outputs leave in the order they were produced.
 * 2. What an agent's code sends is held until the segment it was sent in ends, even if nothing was written yet: a later write of the same
 *    segment may be what it tells of. Outputs while a transaction is open are held until that ends: a commit lets them wait for the sync, a
 *    rollback drops them.
 * 3. An output waits for a sync that began after the last commit before it. One sync serves all outputs and commits before it.
 * 4. After a failed sync nothing leaves any more.
 */

export interface Output {
  release(): void;
  /** The output will never leave: its transaction was rolled back, or the sync failed. */
  drop(error: Error): void;
}

export class RolledBackError extends Error {
  override readonly name = "RolledBackError";

  constructor() {
    super("the turn was rolled back before this left");
  }
}

interface Waiting {
  /** Number of the last commit before the output. */
  readonly after: number;
  readonly output: Output;
}

export class OutputGate {
  /** Hands what was committed so far to whatever `sync` makes durable; a failure counts as the sync's. */
  beforeSync: (() => void | Promise<void>) | null = null;
  readonly #sync: () => Promise<void>;
  readonly #onIdle: () => void;
  #waiting: Waiting[] = [];
  /** Outputs of the running segment; not null while a transaction is open. */
  #held: Output[] | null = null;
  #hasTransaction = false;
  /** Tells the segment whose end was scheduled from later ones. */
  #segment = 0;
  #committed = 0;
  #synced = 0;
  /** What the sync in flight covers. */
  #covering = 0;
  #isSyncing = false;
  #failure: Error | null = null;

  /** `onIdle` is called whenever the last waiting output has left. */
  constructor(sync: () => Promise<void>, onIdle: () => void) {
    this.#sync = sync;
    this.#onIdle = onIdle;
  }

  get isIdle(): boolean {
    return !this.#isSyncing && this.#waiting.length === 0 && this.#held === null;
  }

  /** True when a sync is sure to begin that covers every commit so far. */
  get isSyncDue(): boolean {
    return this.#isSyncing && (this.#waiting.at(-1)?.after ?? 0) > this.#covering;
  }

  send(output: Output): void {
    if (this.#failure !== null) output.drop(this.#failure);
    else if (this.#held !== null) this.#held.push(output);
    else if (this.#synced === this.#committed && this.#waiting.length === 0) output.release();
    else this.#wait(output);
  }

  /** For outputs of agents' code: leaves with the segment it belongs to. */
  sendWithSegment(output: Output): void {
    if (this.#held === null) {
      this.#held = [];
      this.#scheduleEndOfSegment();
    }
    this.#held.push(output);
  }

  /** Resolves when everything the segment has done so far has become durable, so that the caller may act outside. */
  pass(): Promise<void> {
    return new Promise((resolve, reject) => this.sendWithSegment({ release: resolve, drop: reject }));
  }

  transactionOpened(): void {
    this.#hasTransaction = true;
    this.#held ??= [];
  }

  transactionCommitted(): void {
    this.#committed += 1;
    for (const output of this.#takeHeld()) this.#wait(output);
  }

  transactionRolledBack(): void {
    for (const output of this.#takeHeld()) output.drop(new RolledBackError());
  }

  /** The code that ran is at an await or has ended. An open transaction goes on holding; its own end comes soon. */
  segmentEnded(): void {
    if (this.#hasTransaction || this.#held === null) return;
    for (const output of this.#takeHeld()) this.send(output);
  }

  #takeHeld(): readonly Output[] {
    const held = this.#held ?? [];
    this.#held = null;
    this.#hasTransaction = false;
    return held;
  }

  #scheduleEndOfSegment(): void {
    this.#segment += 1;
    const segment = this.#segment;
    // As for transactions: a tick queued from a microtask runs when no microtask is left.
    queueMicrotask(() =>
      process.nextTick(() => {
        if (this.#segment !== segment) return;
        this.segmentEnded();
        if (this.isIdle) this.#onIdle();
      }),
    );
  }

  #wait(output: Output): void {
    if (this.#failure !== null) {
      output.drop(this.#failure);
      return;
    }
    this.#waiting.push({ after: this.#committed, output });
    if (this.#isSyncing) return;
    this.#isSyncing = true;
    // After the events that have already arrived: their turns commit first and share this sync.
    setImmediate(() => this.#begin());
  }

  /** Not `async`, as everything that each event of each instance goes through: promises in between are work for the garbage collector. */
  #begin(): void {
    const covered = this.#committed;
    this.#covering = covered;
    let synced: Promise<void>;
    try {
      const handedOver = this.beforeSync?.();
      synced = handedOver === undefined ? this.#sync() : handedOver.then(this.#sync);
    } catch (error) {
      this.#fail(error);
      return;
    }
    synced.then(
      () => this.#end(covered),
      (error: unknown) => this.#fail(error),
    );
  }

  #end(covered: number): void {
    this.#synced = covered;
    this.#flush(covered);
    if (this.#waiting.length > 0) {
      this.#begin();
      return;
    }
    this.#isSyncing = false;
    this.#onIdle();
  }

  #flush(covered: number): void {
    let count = 0;
    while (count < this.#waiting.length && (this.#waiting[count]?.after ?? 0) <= covered) count++;
    for (const { output } of this.#waiting.splice(0, count)) output.release();
  }

  #fail(cause: unknown): void {
    const error = cause instanceof Error ? cause : new Error(String(cause));
    this.#failure = error;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { output } of waiting) output.drop(error);
  }
}
