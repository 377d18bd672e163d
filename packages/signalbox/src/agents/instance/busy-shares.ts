/**
 * How many instances of each account are busy, so that no account keeps all of memory busy: instances of others would find no room. Idle ones do not count:
 * they leave when there is need.
 *
 * Instances do not report when they become busy. They are counted when one is to be loaded into memory that is nearly full, and the numbers are used again for
 * a moment, so that counting takes next to nothing.
 */
interface Countable {
  readonly ref: { readonly account: string };
  readonly isIdle: boolean;
}

/** For each instance, between two counts. Counting takes some tenths of a microsecond for one: a part of a percent. */
const REST_MS_PER_INSTANCE = 0.1;
/** The same, before an instance is refused. */
const MIN_REST_MS_PER_INSTANCE = 0.01;
/** As for everything that accounts share (`SharedPool`): an account may have twice what is free. */
const GREED = 2;

export class BusyShares {
  readonly #max: number;
  readonly #instances: () => Iterable<Countable>;
  #byAccount = new Map<string, number>();
  #total = 0;
  #countedAt = Number.NEGATIVE_INFINITY;

  constructor(max: number, instances: () => Iterable<Countable>) {
    this.#max = max;
    this.#instances = instances;
  }

  /** `size` instances are in memory. */
  hasRoomFor(account: string, size: number): boolean {
    // If all of them were busy, and of this account, there would still be room.
    if (size + 1 <= GREED * (this.#max - size)) return true;
    this.#count(REST_MS_PER_INSTANCE);
    if (!this.#isFor(account)) {
      this.#count(MIN_REST_MS_PER_INSTANCE);
      if (!this.#isFor(account)) return false;
    }
    // The one that is loaded now begins busy.
    this.#byAccount.set(account, (this.#byAccount.get(account) ?? 0) + 1);
    this.#total += 1;
    return true;
  }

  #isFor(account: string): boolean {
    return (this.#byAccount.get(account) ?? 0) + 1 <= GREED * (this.#max - this.#total);
  }

  #count(restMsPerInstance: number): void {
    const now = performance.now();
    if (now - this.#countedAt < this.#max * restMsPerInstance) return;
    this.#countedAt = now;
    this.#byAccount = new Map();
    this.#total = 0;
    for (const { ref, isIdle } of this.#instances()) {
      if (isIdle) continue;
      this.#byAccount.set(ref.account, (this.#byAccount.get(ref.account) ?? 0) + 1);
      this.#total += 1;
    }
  }
}
