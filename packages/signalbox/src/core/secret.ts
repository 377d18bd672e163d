/** A secret text. Printing, logging, serialising or inspecting it shows `[secret]`. */
import { hash, timingSafeEqual } from "node:crypto";
import { inspect } from "node:util";

const HIDDEN = "[secret]";

export class Secret {
  readonly #text: string;
  readonly #bytes: Buffer;

  constructor(text: string) {
    this.#text = text;
    this.#bytes = Buffer.from(text);
  }

  /** Returns the text. Call it only where the text is used. */
  reveal(): string {
    return this.#text;
  }

  /** Compares in constant time. Only the length can be inferred from the duration. */
  equals(candidate: string): boolean {
    return (
      Buffer.byteLength(candidate) === this.#bytes.length &&
      timingSafeEqual(Buffer.from(candidate), this.#bytes)
    );
  }

  toString(): string {
    return HIDDEN;
  }

  toJSON(): string {
    return HIDDEN;
  }

  [inspect.custom](): string {
    return HIDDEN;
  }
}

export function sha256(text: string): Buffer {
  return hash("sha256", text, "buffer");
}
