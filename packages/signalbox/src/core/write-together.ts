/**
 * One write for what one iteration of the event loop brings: a burst shares a transaction and its sync, and a single item waits for nothing.
 *
 * Invariants:
 * 1. An item is written once, with the items added before and after it in the same iteration, in the order of `add`.
 * 2. `add` resolves to the result of the write with the item, and rejects with its error: all items of a write share its outcome.
 */
export class WriteTogether<Item, Result = void> {
  readonly #write: (items: readonly Item[]) => Promise<Result>;
  #items: Item[] = [];
  #written: Promise<Result> | null = null;

  constructor(write: (items: readonly Item[]) => Promise<Result>) {
    this.#write = write;
  }

  add(item: Item): Promise<Result> {
    this.#items.push(item);
    this.#written ??= new Promise((resolve) => setImmediate(() => resolve(this.#run())));
    return this.#written;
  }

  async #run(): Promise<Result> {
    const items = this.#items;
    this.#items = [];
    this.#written = null;
    return this.#write(items);
  }
}
