/**
 * The queue of frames while there is no connection: ordered, limited in number and size. No frame is discarded silently.
 *
 * 1. An entry is removed exactly once: taken for sending, withdrawn by its owner, or cleared at the end.
 * 2. Above a limit, `add` throws and the outbox is unchanged.
 * 3. A state update replaces a state update directly before it, because each contains the whole state.
 */
import { AgentError } from "./agent-error.ts";

export interface OutboxBound {
  /** Default 256. */
  readonly maxMessages: number;
  /** Characters of JSON text. Default 1,048,576. */
  readonly maxCharacters: number;
}

export const DEFAULT_OUTBOX_BOUND: OutboxBound = { maxMessages: 256, maxCharacters: 1_048_576 };

export interface OutboxEntry {
  readonly kind: "call" | "state" | "message";
  readonly text: string;
  /** Called when the text is passed to a socket. */
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
        `not connected, and the limit of ${this.#bound.maxMessages} waiting messages or ${this.#bound.maxCharacters} characters is reached`,
      );
    }
    if (replaced !== undefined) this.#entries.pop();
    this.#entries.push(entry);
    this.#characters = characters;
  }

  /** Removes and returns the oldest entry. */
  take(): OutboxEntry | undefined {
    const entry = this.#entries.shift();
    this.#characters -= entry?.text.length ?? 0;
    return entry;
  }

  /** Undoes `take` for an entry that could not be sent. */
  putBack(entry: OutboxEntry): void {
    this.#entries.unshift(entry);
    this.#characters += entry.text.length;
  }

  /** Removes an entry. Returns false if it is not in the outbox. */
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
