/** Reads JSON that stands inside of a string and arrives in pieces: escapes become their characters, all other characters stay. */

interface Unescaped {
  readonly text: string;
  /** Null if there are no escapes. Where each character begins and ends in the piece; a character that the next piece completes is the last one. */
  readonly places: { readonly from: number[]; readonly to: number[] } | null;
  /** The piece ends inside of an escape. */
  readonly isOpen: boolean;
}

const SHORT: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };
const ESCAPE = /^\\(?:u[0-9a-fA-F]{4}|[^u])/;
const OPEN_ESCAPE = /^\\(?:u[0-9a-fA-F]{0,3})?$/;

export class JsonUnescaper {
  /** The beginning of an escape. */
  #open = "";

  push(piece: string): Unescaped {
    const open = this.#open;
    if (open === "" && !piece.includes("\\")) return { text: piece, places: null, isOpen: false };
    const source = open + piece;
    this.#open = "";
    let text = "";
    const from: number[] = [];
    const to: number[] = [];
    for (let at = 0; at < source.length;) {
      let length = 1;
      let character = source[at] ?? "";
      if (character === "\\") {
        const rest = source.slice(at, at + 6);
        if (OPEN_ESCAPE.test(rest)) {
          this.#open = rest;
          from.push(Math.max(0, at - open.length));
          to.push(piece.length);
          break;
        }
        const escape = ESCAPE.exec(rest)?.[0];
        if (escape !== undefined) {
          length = escape.length;
          const kind = escape[1] ?? "";
          character =
            kind === "u" ? String.fromCharCode(Number.parseInt(escape.slice(2), 16)) : (SHORT[kind] ?? kind);
        }
      }
      text += character;
      from.push(Math.max(0, at - open.length));
      to.push(Math.max(0, at + length - open.length));
      at += length;
    }
    return { text, places: { from, to }, isOpen: this.#open !== "" };
  }
}
