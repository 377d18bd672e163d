/** A number of things of which at most `max` are in use. The owner of what was taken releases it. */
export class Limit {
  readonly max: number;
  #used = 0;

  constructor(max: number) {
    this.max = max;
  }

  get used(): number {
    return this.#used;
  }

  hasRoomFor(count: number): boolean {
    return this.#used + count <= this.max;
  }

  /** Takes `count` until it is released. Returns false, without effect, if the limit would be exceeded. */
  take(count = 1): boolean {
    if (!this.hasRoomFor(count)) return false;
    this.#used += count;
    return true;
  }

  release(count = 1): void {
    this.#used -= count;
  }
}
