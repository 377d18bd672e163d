/**
 * A number of things (bytes, places) that accounts share, so that none of them can take everything.
 *
 * Invariants:
 * 1. Never more than `max` are in use.
 * 2. A holder gets more only while it would not hold more than twice what is free. Alone it gets two thirds; the next one gets two
 *    thirds of the rest, and so on, so that every other holder finds room, however much the first ones take.
 * 3. Large amounts leave a sixteenth free, so that small ones find room.
 * See docs/decisions/0290.
 */

/** The holder of what callers without a token use, of all accounts together. */
export const STRANGERS = "";

const GREED = 2;
const KEPT_FOR_SMALL = 1 / 16;

export class SharedPool<S extends Share> {
  readonly max: number;
  readonly #createShare: (pool: SharedPool<S>) => S;
  readonly #shares = new Map<string, S>();
  #used = 0;

  constructor(max: number, createShare: (pool: SharedPool<S>) => S) {
    this.max = max;
    this.#createShare = createShare;
  }

  get used(): number {
    return this.#used;
  }

  /** Shares are kept: there are no more of them than accounts. */
  shareOf(holder: string): S {
    let share = this.#shares.get(holder);
    if (share === undefined) this.#shares.set(holder, (share = this.#createShare(this)));
    return share;
  }

  /** For shares. */
  hasRoomFor(held: number, count: number, isSmall: boolean): boolean {
    const free = this.max - this.#used;
    const available = isSmall ? free : free - this.max * KEPT_FOR_SMALL;
    return count <= available && held + count <= GREED * free;
  }

  /** For shares. */
  change(count: number): void {
    this.#used += count;
  }
}

interface Closable {
  readonly destroyed: boolean;
  once(event: "close", listener: () => void): unknown;
}

/** What one holder has of a pool. The owner of what was taken releases it. */
export class Share {
  readonly #pool: Pick<SharedPool<Share>, "hasRoomFor" | "change">;
  #used = 0;

  constructor(pool: Pick<SharedPool<Share>, "hasRoomFor" | "change">) {
    this.#pool = pool;
  }

  get used(): number {
    return this.#used;
  }

  /** Whether one more could be taken. */
  get hasRoom(): boolean {
    return this.#pool.hasRoomFor(this.#used, 1, true);
  }

  /** Returns false, without effect, if there is no room for this holder. */
  take(count = 1, isSmall = true): boolean {
    if (!this.#pool.hasRoomFor(this.#used, count, isSmall)) return false;
    this.#used += count;
    this.#pool.change(count);
    return true;
  }

  /** Takes one until the stream is closed. Returns false, without effect, if there is no room, or if it is closed already. */
  takeUntilClosed(stream: Closable): boolean {
    if (stream.destroyed || !this.take()) return false;
    stream.once("close", () => this.release());
    return true;
  }

  release(count = 1): void {
    this.#used -= count;
    this.#pool.change(-count);
  }
}

/** Places for work that is under way. */
export class SharedPlaces extends SharedPool<Share> {
  constructor(max: number) {
    super(max, (pool) => new Share(pool));
  }
}
