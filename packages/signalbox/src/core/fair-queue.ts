/**
 * Work that accounts share one after the other: at most `maxRunning` pieces run at once, and the next one is of the account that has waited
 * longest for its turn. An account that asks for a hundred things at once delays others by one of them.
 */
import { overloaded } from "./overload.ts";

type Piece = () => void;

export class FairQueue {
  readonly #maxRunning: number;
  readonly #maxWaiting: number;
  /** By holder, in the order of their turns: a holder that had its turn is the last one. */
  readonly #waiting = new Map<string, Piece[]>();
  #running = 0;

  /** More than `maxWaiting` pieces of one holder are refused. */
  constructor(maxRunning: number, maxWaiting: number) {
    this.#maxRunning = maxRunning;
    this.#maxWaiting = maxWaiting;
  }

  async run<T>(holder: string, work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#maxRunning) await this.#turn(holder);
    else this.#running += 1;
    try {
      return await work();
    } finally {
      this.#next();
    }
  }

  #turn(holder: string): Promise<void> {
    const pieces = this.#waiting.get(holder) ?? [];
    if (pieces.length >= this.#maxWaiting) throw overloaded();
    return new Promise((resolve) => {
      pieces.push(resolve);
      this.#waiting.set(holder, pieces);
    });
  }

  /** The place goes to the next holder, or becomes free. */
  #next(): void {
    const [first] = this.#waiting;
    if (first === undefined) {
      this.#running -= 1;
      return;
    }
    const [holder, pieces] = first;
    const piece = pieces.shift();
    this.#waiting.delete(holder);
    if (pieces.length > 0) this.#waiting.set(holder, pieces);
    piece?.();
  }
}
