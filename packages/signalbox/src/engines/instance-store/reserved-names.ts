/** Names that guarded statements cannot use: for each `x` of a list, `x` itself and everything that begins with `x_`. */
const BLANK = String.raw`(?:\s|--[^\n]*(?:\n|$)|\/\*(?:[^*]|\*(?!\/))*\*\/)`;

export class ReservedNames {
  readonly #names: readonly string[];
  readonly #prefixes: readonly string[];
  readonly #rename: RegExp;

  /**
   * @param names Words. The name itself is reserved as well as the prefix, because a full-text table `x` has tables `x_data`, `x_idx`, ….
   */
  constructor(names: readonly string[]) {
    this.#names = names.map((name) => name.toLowerCase());
    this.#prefixes = this.#names.map((name) => `${name}_`);
    const name = `(?:${this.#names.join("|")})`;
    // A column may have any name: `RENAME COLUMN a TO b`, and the short form without COLUMN, have a name between the two words.
    this.#rename = new RegExp(
      String.raw`\bRENAME${BLANK}+TO${BLANK}*["'\x60[]?(${name}(?:_[^\s"'\x60\];]*|(?![^\s"'\x60\];/-])))`,
      "i",
    );
  }

  has(name: string | null): boolean {
    const lower = name?.toLowerCase();
    if (lower === undefined) return false;
    return this.#prefixes.some((prefix) => lower.startsWith(prefix)) || this.#names.includes(lower);
  }

  /**
   * The reserved name that an `ALTER TABLE … RENAME TO` gives. SQLite passes only the old name to the authorizer, so the new name is read from the
   * text. Names in SQL have no escapes: a reserved name appears as it is, in one of four kinds of quotes or none, after blanks and comments.
   */
  findRename(text: string): string | undefined {
    return this.#rename.exec(text)?.[1];
  }
}
