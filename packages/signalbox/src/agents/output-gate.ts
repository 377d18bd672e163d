/**
 * Nothing leaves an instance before what it tells of is on stable storage: answers, frames, outgoing requests, messages to other
 * agents. That holds for answers that only read, too: they may have seen a commit that no sync covers yet.
 *
 * Invariants:
 * 1. Outputs leave in the order they were produced.
 * 2. An output produced while a transaction is open is held until that ends: a commit lets it wait for the sync, a rollback drops it.
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
  readonly #sync: () => Promise<void>;
  readonly #onIdle: () => void;
  #waiting: Waiting[] = [];
  #held: Output[] | null = null;
  #committed = 0;
  #synced = 0;
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

  send(output: Output): void {
    if (this.#failure !== null) output.drop(this.#failure);
    else if (this.#held !== null) this.#held.push(output);
    else if (this.#synced === this.#committed && this.#waiting.length === 0) output.release();
    else this.#wait(output);
  }

  /** Resolves when everything before it has become durable, so that the caller may act outside. */
  pass(): Promise<void> {
    return new Promise((resolve, reject) => this.send({ release: resolve, drop: reject }));
  }

  transactionOpened(): void {
    this.#held = [];
  }

  transactionCommitted(): void {
    this.#committed += 1;
    const held = this.#held ?? [];
    this.#held = null;
    for (const output of held) this.#wait(output);
  }

  transactionRolledBack(): void {
    const held = this.#held ?? [];
    this.#held = null;
    for (const output of held) output.drop(new RolledBackError());
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
    setImmediate(() => void this.#run());
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const covered = this.#committed;
      try {
        await this.#sync();
      } catch (error) {
        this.#fail(error instanceof Error ? error : new Error(String(error)));
        return;
      }
      this.#synced = covered;
      this.#flush(covered);
    }
    this.#isSyncing = false;
    this.#onIdle();
  }

  #flush(covered: number): void {
    const ready = this.#waiting;
    let count = 0;
    while (count < ready.length && (ready[count]?.after ?? 0) <= covered) count++;
    this.#waiting = ready.slice(count);
    for (let i = 0; i < count; i++) ready[i]?.output.release();
  }

  #fail(error: Error): void {
    this.#failure = error;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { output } of waiting) output.drop(error);
  }
}
