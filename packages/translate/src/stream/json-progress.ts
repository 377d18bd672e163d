/** Follows a JSON object that arrives in pieces, to know when it is complete. */
export class JsonProgress {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  #hasBegun = false;

  feed(text: string): void {
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (code === 0x5c) this.#isEscaped = true;
        else if (code === 0x22) this.#isInString = false;
      } else if (code === 0x22) this.#isInString = true;
      else if (code === 0x7b || code === 0x5b) {
        this.#depth += 1;
        this.#hasBegun = true;
      } else if (code === 0x7d || code === 0x5d) this.#depth -= 1;
    }
  }

  get isComplete(): boolean {
    return this.#hasBegun && this.#depth <= 0;
  }
}
