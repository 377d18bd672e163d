/** A text that must not be seen by accident: printing, logging, serialising or inspecting it shows `[secret]`. */
import { hash, timingSafeEqual } from "node:crypto";
import { inspect } from "node:util";

const HIDDEN = "[secret]";

export class Secret {
  readonly #text: string;
  #digest: Buffer | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  /** The text itself; call it only where it leaves for its purpose. */
  reveal(): string {
    return this.#text;
  }

  /** Compares without telling through timing where the difference is; hashing first hides the length too. */
  equals(candidate: string): boolean {
    this.#digest ??= sha256(this.#text);
    return timingSafeEqual(this.#digest, sha256(candidate));
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
