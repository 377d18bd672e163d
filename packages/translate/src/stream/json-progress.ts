/**
 * Follows a JSON object that arrives in pieces, to know when it is complete. Text that does not begin as an object is
 * never complete: where a model writes something else, only the end of the call tells.
 */
export class JsonProgress {
  #state: "before" | "inside" | "complete" | "other" = "before";
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  feed(text: string): void {
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (this.#state === "before") {
        if (code === 0x7b) {
          this.#state = "inside";
          this.#depth = 1;
        } else if (code > 0x20) this.#state = "other";
      } else if (this.#state !== "inside") return;
      else if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (code === 0x5c) this.#isEscaped = true;
        else if (code === 0x22) this.#isInString = false;
      } else if (code === 0x22) this.#isInString = true;
      else if (code === 0x7b) this.#depth += 1;
      else if (code === 0x7d) {
        this.#depth -= 1;
        if (this.#depth === 0) this.#state = "complete";
      }
    }
  }

  get isComplete(): boolean {
    return this.#state === "complete";
  }
}
