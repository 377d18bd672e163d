/** The query of a request, parsed only when it has to be. */
export class QueryText {
  readonly #text: string;
  /** Without escapes, as most are: names and values are then found where they stand. */
  #isPlain: boolean | undefined;
  #parsed: URLSearchParams | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  get parsed(): URLSearchParams {
    this.#parsed ??= new URLSearchParams(this.#text);
    return this.#parsed;
  }

  /** The name of the first parameter that is not among these. */
  findOther(known: readonly string[]): string | null {
    const text = this.#text;
    if (!this.#hasPlainText()) return this.parsed.keys().find((name) => !known.includes(name)) ?? null;
    for (let start = 0; start < text.length;) {
      const next = text.indexOf("&", start);
      const end = next === -1 ? text.length : next;
      const equals = text.indexOf("=", start);
      const nameEnd = equals === -1 || equals > end ? end : equals;
      if (end > start && !isAmong(text, start, nameEnd, known)) return text.slice(start, nameEnd);
      start = end + 1;
    }
    return null;
  }

  #hasPlainText(): boolean {
    this.#isPlain ??= !this.#text.includes("%") && !this.#text.includes("+");
    return this.#isPlain;
  }

  find(name: string): string | null {
    const text = this.#text;
    if (!this.#hasPlainText()) return this.parsed.get(name);
    for (let start = 0; start <= text.length;) {
      const next = text.indexOf("&", start);
      const end = next === -1 ? text.length : next;
      if (text.startsWith(name, start)) {
        const after = start + name.length;
        if (after === end) return "";
        if (text.charCodeAt(after) === 0x3d) return text.slice(after + 1, end);
      }
      start = end + 1;
    }
    return null;
  }
}

/** Compares in place: the names of a read's parameters are looked at on every one. */
function isAmong(text: string, start: number, end: number, known: readonly string[]): boolean {
  for (const name of known) {
    if (name.length === end - start && text.startsWith(name, start)) return true;
  }
  return false;
}
