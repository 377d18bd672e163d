/**
 * What one request holds of a budget that many share, such as the memory for bodies. Given back when its answer has left or its connection
 * broke, whichever way the request ended; so no path through an area can forget it.
 */
export interface MemoryBudget {
  /** False when the bytes do not fit; otherwise they count until they are given back. */
  take(bytes: number): boolean;
  give(bytes: number): void;
}

export class HeldMemory {
  #budget: MemoryBudget | null = null;
  #bytes = 0;
  #isOver = false;

  /** False when the bytes do not fit, or when the request is over and could not give them back. */
  hold(budget: MemoryBudget, bytes: number): boolean {
    if (this.#isOver || !budget.take(bytes)) return false;
    this.#budget = budget;
    this.#bytes += bytes;
    return true;
  }

  /** Gives everything back; nothing can be held afterwards. */
  release(): void {
    this.#isOver = true;
    if (this.#bytes === 0) return;
    this.#budget?.give(this.#bytes);
    this.#bytes = 0;
  }
}
