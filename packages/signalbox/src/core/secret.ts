/** A text that must not be seen by accident: printing, logging, serialising or inspecting it shows `[secret]`. */
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

  /** The text itself; call it only where it leaves for its purpose. */
  reveal(): string {
    return this.#text;
  }

  /** Compares without telling through timing where the difference is. (That the length differs may show; it helps nobody to guess.) */
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
