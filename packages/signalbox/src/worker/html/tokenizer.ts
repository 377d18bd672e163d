/**
 * Cuts HTML that arrives in pieces into tags, texts, comments and doctypes, with parse5's tokenizer. It is no parser of documents: no element is implied. Every token has its text as it was
 * written, and what parse5 drops (`</>`, a tag that does not end) is a token, too: the tokens together are the input.
 */
import { SAXParser, type SaxToken, type StartTag } from "parse5-sax-parser";

export interface Attribute {
  /** In lower case. */
  readonly name: string;
  /** As written, without quotes. */
  value: string;
  /** As written; null for one that was set. */
  raw: string | null;
}

export type Token =
  | { readonly kind: "text"; readonly text: string }
  | {
      readonly kind: "start";
      /** In lower case. */
      readonly name: string;
      readonly rawName: string;
      readonly attributes: Attribute[];
      readonly isSelfClosing: boolean;
      readonly raw: string;
    }
  | { readonly kind: "end"; readonly name: string; readonly raw: string }
  | { readonly kind: "comment"; readonly text: string; readonly raw: string }
  | {
      readonly kind: "doctype";
      readonly name: string | null;
      readonly publicId: string | null;
      readonly systemId: string | null;
      readonly raw: string;
    }
  /** Markup that no handler sees, such as `</>`. */
  | { readonly kind: "other"; readonly raw: string };

const TAG_NAME = /^<\/?([^\s/>]*)/;
const ATTRIBUTE = /^[^=]*=\s*(["']?)([\s\S]*?)\1$/;

export class Tokenizer {
  readonly #parser = new SAXParser({ sourceCodeLocationInfo: true });
  /** The input from the end of the last token on, and where that is in the whole input. */
  #input = "";
  #offset = 0;
  #tokens: Token[] = [];

  constructor() {
    const add =
      <T extends SaxToken>(toToken: (token: T, raw: string, start: number) => Token) =>
      (token: T) => {
        const { sourceCodeLocation: location } = token;
        if (location === null || location === undefined) return;
        this.#drop(location.startOffset);
        const raw = this.#take(location.endOffset);
        if (raw !== "") this.#tokens.push(toToken(token, raw, location.startOffset));
      };
    this.#parser
      .on(
        "text",
        add((_token, text) => ({ kind: "text", text })),
      )
      .on("startTag", add(startTag))
      .on(
        "endTag",
        add((_token, raw) => ({ kind: "end", name: nameOf(raw).toLowerCase(), raw })),
      )
      .on(
        "comment",
        add((token, raw) => ({ kind: "comment", text: token.text, raw })),
      )
      .on(
        "doctype",
        add(({ name, publicId, systemId }, raw) => ({ kind: "doctype", name, publicId, systemId, raw })),
      );
  }

  /** The tokens that are complete. `isLast`: nothing follows. */
  async push(piece: string, isLast = false): Promise<readonly Token[]> {
    this.#input += piece;
    await new Promise<void>((resolve, reject) => {
      const done = (error?: Error | null) =>
        error === undefined || error === null ? resolve() : reject(error);
      if (isLast) this.#parser.end(piece, () => done());
      else this.#parser.write(piece, done);
    });
    if (isLast) this.#drop(this.#offset + this.#input.length);
    const tokens = this.#tokens;
    this.#tokens = [];
    return tokens;
  }

  /** What parse5 has passed over. */
  #drop(end: number): void {
    const raw = this.#take(end);
    if (raw !== "") this.#tokens.push({ kind: "other", raw });
  }

  #take(end: number): string {
    const length = Math.max(0, end - this.#offset);
    const taken = this.#input.slice(0, length);
    this.#input = this.#input.slice(length);
    this.#offset += taken.length;
    return taken;
  }
}

function startTag({ attrs, selfClosing, sourceCodeLocation }: StartTag, raw: string, start: number): Token {
  const rawName = nameOf(raw);
  // The types of parse5 do not have them.
  const { attrs: locations = {} } = (sourceCodeLocation ?? {}) as {
    readonly attrs?: Readonly<Record<string, { readonly startOffset: number; readonly endOffset: number }>>;
  };
  const attributes = attrs.map(({ name, value }): Attribute => {
    const location = locations[name];
    const written =
      location === undefined ? null : raw.slice(location.startOffset - start, location.endOffset - start);
    return { name, value: written === null ? value : (ATTRIBUTE.exec(written)?.[2] ?? ""), raw: written };
  });
  return { kind: "start", name: rawName.toLowerCase(), rawName, attributes, isSelfClosing: selfClosing, raw };
}

function nameOf(raw: string): string {
  return TAG_NAME.exec(raw)?.[1] ?? "";
}
