/** What handlers of a rewriter receive: elements, end tags, texts, comments, doctypes, and the end of the document. */
import type { Attribute, Token } from "./tokenizer.ts";

/** What handlers insert: text, or a stream of text that is read when its turn comes. */
export type Content = string | ReadableStream | Response;
export interface ContentOptions {
  /** The text is markup, and is not escaped. */
  readonly html?: boolean;
}

/** Pieces of the output, in order. */
export type Piece = { readonly content: Content; readonly isHtml: boolean };

/** As programs without types expect it: any value becomes text. */
export const toText: (value: unknown) => string = String;

export function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function toPiece(content: Content, options: ContentOptions | undefined): Piece {
  return { content, isHtml: options?.html === true };
}

/** What can be inserted beside a token, and instead of it. */
class Mutable {
  readonly beforePieces: Piece[] = [];
  readonly afterPieces: Piece[] = [];
  replacement: Piece[] | null = null;

  get removed(): boolean {
    return this.replacement !== null;
  }

  before(content: Content, options?: ContentOptions): this {
    this.beforePieces.push(toPiece(content, options));
    return this;
  }

  /** Later calls insert directly behind the token. */
  after(content: Content, options?: ContentOptions): this {
    this.afterPieces.unshift(toPiece(content, options));
    return this;
  }

  replace(content: Content, options?: ContentOptions): this {
    this.replacement = [toPiece(content, options)];
    return this;
  }

  remove(): this {
    this.replacement ??= [];
    return this;
  }
}

const NAMESPACES: Readonly<Record<string, string>> = {
  svg: "http://www.w3.org/2000/svg",
  math: "http://www.w3.org/1998/Math/MathML",
};

export class Element extends Mutable {
  readonly namespaceURI: string;
  readonly prependPieces: Piece[] = [];
  readonly appendPieces: Piece[] = [];
  readonly endTagHandlers: ((endTag: EndTag) => unknown)[] = [];
  /** Replaces the content. */
  inner: Piece[] | null = null;
  keepsContent = false;
  readonly #token: Token & { readonly kind: "start" };
  readonly #canHaveContent: boolean;
  #name: string;
  #isChanged = false;

  constructor(token: Token & { readonly kind: "start" }, root: string | null, canHaveContent: boolean) {
    super();
    this.#token = token;
    this.#name = token.rawName;
    this.#canHaveContent = canHaveContent;
    this.namespaceURI = NAMESPACES[root ?? token.name] ?? "http://www.w3.org/1999/xhtml";
  }

  get tagName(): string {
    return this.#name.toLowerCase();
  }

  set tagName(name: string) {
    if (!/^[A-Za-z][^\s/>]*$/.test(name)) throw new TypeError(`"${name}" is not the name of a tag.`);
    this.#name = name;
    this.#isChanged = true;
  }

  get isRenamed(): boolean {
    return this.#name !== this.#token.rawName;
  }

  get attributes(): IterableIterator<[string, string]> {
    return this.#token.attributes.map(({ name, value }): [string, string] => [name, value]).values();
  }

  getAttribute(name: string): string | null {
    return this.#find(name)?.value ?? null;
  }

  hasAttribute(name: string): boolean {
    return this.#find(name) !== undefined;
  }

  setAttribute(name: string, value: string): this {
    if (!/^[^\s"'>/=]+$/.test(name)) throw new TypeError(`"${name}" is not the name of an attribute.`);
    const known = this.#find(name);
    this.#isChanged = true;
    if (known === undefined)
      this.#token.attributes.push({ name: name.toLowerCase(), value: toText(value), raw: null });
    else {
      known.value = toText(value);
      known.raw = null;
    }
    return this;
  }

  removeAttribute(name: string): this {
    const at = this.#token.attributes.findIndex((attribute) => attribute.name === name.toLowerCase());
    if (at === -1) return this;
    this.#token.attributes.splice(at, 1);
    this.#isChanged = true;
    return this;
  }

  prepend(content: Content, options?: ContentOptions): this {
    if (this.#canHaveContent) this.prependPieces.unshift(toPiece(content, options));
    return this;
  }

  append(content: Content, options?: ContentOptions): this {
    if (this.#canHaveContent) this.appendPieces.push(toPiece(content, options));
    return this;
  }

  setInnerContent(content: Content, options?: ContentOptions): this {
    if (!this.#canHaveContent) return this;
    this.inner = [toPiece(content, options)];
    this.prependPieces.length = 0;
    this.appendPieces.length = 0;
    return this;
  }

  removeAndKeepContent(): this {
    this.keepsContent = true;
    return this.remove();
  }

  onEndTag(handler: (endTag: EndTag) => unknown): void {
    if (!this.#canHaveContent) throw new TypeError("Parser error: No end tag.");
    this.endTagHandlers.push(handler);
  }

  /** The start tag as it is written. */
  serialize(): string {
    if (!this.#isChanged) return this.#token.raw;
    const attributes = this.#token.attributes.map(
      ({ name, value, raw }) => ` ${raw ?? `${name}="${value.replaceAll('"', "&quot;")}"`}`,
    );
    return `<${this.#name}${attributes.join("")}${this.#token.isSelfClosing ? " /" : ""}>`;
  }

  #find(name: string): Attribute | undefined {
    return this.#token.attributes.find((attribute) => attribute.name === name.toLowerCase());
  }
}

export class EndTag extends Mutable {
  #name: string;
  readonly #raw: string | null;

  /** `raw` null: the name has been changed with that of the start tag. */
  constructor(name: string, raw: string | null) {
    super();
    this.#name = name;
    this.#raw = raw;
  }

  get name(): string {
    return this.#name;
  }

  set name(name: string) {
    this.#name = name;
  }

  serialize(originalName: string): string {
    return this.#raw !== null && this.#name === originalName ? this.#raw : `</${this.#name}>`;
  }
}

export class TextChunk extends Mutable {
  readonly text: string;
  readonly lastInTextNode: boolean;

  constructor(text: string, lastInTextNode: boolean) {
    super();
    this.text = text;
    this.lastInTextNode = lastInTextNode;
  }
}

export class Comment extends Mutable {
  readonly #raw: string;
  #text: string;
  #isChanged = false;

  constructor(text: string, raw: string) {
    super();
    this.#text = text;
    this.#raw = raw;
  }

  get text(): string {
    return this.#text;
  }

  set text(text: string) {
    if (text.includes("-->")) throw new TypeError("A comment cannot contain `-->`.");
    this.#text = text;
    this.#isChanged = true;
  }

  serialize(): string {
    return this.#isChanged ? `<!--${this.#text}-->` : this.#raw;
  }
}

export class Doctype {
  readonly name: string | null;
  readonly publicId: string | null;
  readonly systemId: string | null;

  constructor({ name, publicId, systemId }: Token & { readonly kind: "doctype" }) {
    this.name = name;
    this.publicId = publicId;
    this.systemId = systemId;
  }
}

export class DocumentEnd {
  readonly pieces: Piece[] = [];

  append(content: Content, options?: ContentOptions): this {
    this.pieces.push(toPiece(content, options));
    return this;
  }
}
