/** Names that guarded statements cannot use: `x`, and everything that begins with `x_`. */
export class ReservedNames {
  readonly #name: string;
  readonly #prefix: string;
  readonly #rename: RegExp;

  /**
   * @param name A word. The name itself is reserved as well as the prefix, because a full-text table `x` has tables `x_data`, `x_idx`, ….
   */
  constructor(name: string) {
    this.#name = name.toLowerCase();
    this.#prefix = `${this.#name}_`;
    this.#rename = new RegExp(
      String.raw`\bTO(?:\s|--[^\n]*(?:\n|$)|\/\*(?:[^*]|\*(?!\/))*\*\/)*["'\x60[]?(${name}(?:_[^\s"'\x60\];]*|(?![^\s"'\x60\];/-])))`,
      "i",
    );
  }

  has(name: string | null): boolean {
    const lower = name?.toLowerCase();
    return lower !== undefined && (lower.startsWith(this.#prefix) || lower === this.#name);
  }

  /**
   * The reserved name that an `ALTER TABLE … RENAME TO` gives. SQLite passes only the old name to the authorizer, so the new name is read from the
   * text. Names in SQL have no escapes: a reserved name appears as it is, in one of four kinds of quotes or none, after blanks and comments.
   */
  findRename(text: string): string | undefined {
    return this.#rename.exec(text)?.[1];
  }
}
