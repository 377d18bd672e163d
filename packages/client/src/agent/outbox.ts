/**
 * What waits to be sent while there is no connection. In order, bounded in number and size; nothing is dropped silently.
 *
 * 1. An entry leaves exactly once: taken for sending, withdrawn by its owner, or cleared at the end.
 * 2. Over the bound, `add` throws and the outbox is unchanged.
 * 3. A state update that directly follows another replaces it: each carries the whole state, so only the last one matters.
 */
import { AgentError } from "./agent-error.ts";

export interface OutboxBound {
  /** Default 256. */
  readonly maxMessages: number;
  /** In characters of JSON text. Default 1,048,576. */
  readonly maxCharacters: number;
}

export const DEFAULT_OUTBOX_BOUND: OutboxBound = { maxMessages: 256, maxCharacters: 1_048_576 };

export interface OutboxEntry {
  readonly kind: "call" | "state" | "message";
  readonly text: string;
  /** Runs when the text is handed to a socket. */
  readonly onSent?: () => void;
}

export class Outbox {
  readonly #bound: OutboxBound;
  readonly #entries: OutboxEntry[] = [];
  #characters = 0;

  constructor(bound: OutboxBound) {
    this.#bound = bound;
  }

  get length(): number {
    return this.#entries.length;
  }

  add(entry: OutboxEntry): void {
    const last = this.#entries.at(-1);
    const replaced = entry.kind === "state" && last?.kind === "state" ? last : undefined;
    const characters = this.#characters - (replaced?.text.length ?? 0) + entry.text.length;
    const messages = this.#entries.length + (replaced === undefined ? 1 : 0);
    if (messages > this.#bound.maxMessages || characters > this.#bound.maxCharacters) {
      throw new AgentError(
        "buffer_full",
        `not connected, and more than ${this.#bound.maxMessages} messages or ${this.#bound.maxCharacters} characters would wait to be sent`,
      );
    }
    if (replaced !== undefined) this.#entries.pop();
    this.#entries.push(entry);
    this.#characters = characters;
  }

  /** The oldest entry, which is no longer in the outbox. */
  take(): OutboxEntry | undefined {
    const entry = this.#entries.shift();
    this.#characters -= entry?.text.length ?? 0;
    return entry;
  }

  /** Undoes `take` for an entry that could not be sent after all. */
  putBack(entry: OutboxEntry): void {
    this.#entries.unshift(entry);
    this.#characters += entry.text.length;
  }

  /** Removes an entry that is no longer wanted; false when it was not (or no longer) here. */
  withdraw(entry: OutboxEntry): boolean {
    const index = this.#entries.indexOf(entry);
    if (index === -1) return false;
    this.#entries.splice(index, 1);
    this.#characters -= entry.text.length;
    return true;
  }

  has(kind: OutboxEntry["kind"]): boolean {
    return this.#entries.some((entry) => entry.kind === kind);
  }

  clear(): void {
    this.#entries.length = 0;
    this.#characters = 0;
  }
}
