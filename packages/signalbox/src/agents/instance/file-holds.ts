/**
 * Which instances' files are in use by something other than an instance in memory: an instance that is closing, a reader, a removal. A new
 * instance of the same key waits until its file is free.
 */
import type { Logger } from "../../telemetry/logger.ts";

export class FileHolds {
  readonly #logger: Logger;
  readonly #holds = new Map<string, Promise<void>>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Undefined when the file is free; else resolves when the hold has ended. */
  find(key: string): Promise<void> | undefined {
    return this.#holds.get(key);
  }

  /** Replaces the hold of the key, if any: `until` ends after it. A rejection is logged and ends the hold. */
  hold(key: string, until: Promise<unknown>): void {
    const settled = until.catch((error: unknown) => {
      this.#logger.error({ err: error, instance: key }, "closing an instance failed");
    });
    const held = settled.then(() => {
      if (this.#holds.get(key) === held) this.#holds.delete(key);
    });
    this.#holds.set(key, held);
  }

  /** Resolves when the file is free and at most `maxHolds` files are held. */
  async whenFree(key: string, maxHolds: number): Promise<void> {
    for (;;) {
      // Again after each wait: the file may be held by something else by then.
      const held = this.#holds.get(key);
      if (held !== undefined) await held;
      else if (this.#holds.size > maxHolds) await Promise.race(this.#holds.values());
      else return;
    }
  }

  get isFree(): boolean {
    return this.#holds.size === 0;
  }

  async whenAllFree(): Promise<void> {
    await Promise.all(this.#holds.values());
  }
}
