/**
 * What a translation could not carry over. Nothing is left out without an entry here.
 *
 * - `refuse`: the answer would mean something else without the field. Throws, unless the caller allowed dropping.
 * - `note`: the answer means the same without the field (a hint, a cost or cache setting), or the field was weakened in
 *   a way that the contract pins. Never throws, always listed. docs/decisions/0105 lists these fields with reasons.
 */
import { UnsupportedFieldError } from "./errors.ts";

export class Losses {
  readonly #canDrop: boolean;
  readonly #fields = new Set<string>();
  readonly target: string;

  constructor(target: string, canDrop: boolean) {
    this.target = target;
    this.#canDrop = canDrop;
  }

  refuse(field: string, reason?: string): void {
    if (!this.#canDrop) {
      const detail = reason ?? `the target (${this.target}) cannot express it`;
      throw new UnsupportedFieldError(field, `${field} is not supported: ${detail}`);
    }
    this.#fields.add(field);
  }

  note(field: string): void {
    this.#fields.add(field);
  }

  list(): readonly string[] {
    return [...this.#fields];
  }
}
