/**
 * What a translation could not carry over. Nothing is left out without an entry here.
 *
 * - `refuse`: the answer would mean something else without the field. Throws, unless the caller allowed dropping.
 * - `note`: the answer means the same without the field (a hint, a cost or cache setting), or the field was weakened in
 *   a way that the contract pins. Never throws, always listed. docs/decisions/0105 lists these fields with reasons.
 */
import { UnsupportedFieldError } from "./errors.ts";

/** A request with thousands of unknown fields must not become a list of thousands. */
const MAX_NAMES = 50;
const MAX_NAME_LENGTH = 100;

/** Positions are left out: every turn of a long conversation can lose the same thing. Names of fields are the client's text. */
function toListedName(field: string): string {
  return field
    .slice(0, MAX_NAME_LENGTH)
    .replaceAll(/\[\d+\]/g, "[]")
    .replaceAll(/[^\w.[\]-]/g, "?");
}

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

  /** Names without repetition, safe for a header. */
  list(): readonly string[] {
    const names = [...new Set(Array.from(this.#fields, toListedName))];
    return names.length > MAX_NAMES ? [...names.slice(0, MAX_NAMES), "more"] : names;
  }
}
