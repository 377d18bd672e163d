/**
 * `HTMLRewriter`: calls handlers for parts of an HTML stream, which may change them, and writes everything else as it was. Handlers run one after the other, in the order of the
 * document and of their registration; the stream waits for those that return promises.
 *
 * Invariant: at most one piece of the input, and one token that is not complete, is in memory. A text is complete when markup follows it.
 */
import { type Matches, type OpenElement, parseSelector } from "./selector.ts";
import { type Token, Tokenizer } from "./tokenizer.ts";
import {
  Comment,
  Doctype,
  DocumentEnd,
  Element,
  EndTag,
  escapeHtml,
  type Piece,
  TextChunk,
  toText,
} from "./tokens.ts";

type Handler<T> = (token: T) => unknown;

interface ElementHandlers {
  element?: Handler<Element>;
  comments?: Handler<Comment>;
  text?: Handler<TextChunk>;
}

interface DocumentHandlers {
  doctype?: Handler<Doctype>;
  comments?: Handler<Comment>;
  text?: Handler<TextChunk>;
  end?: Handler<DocumentEnd>;
}

/** In the order of registration; `matches` null for those of the document. */
interface Registered {
  readonly matches: Matches | null;
  readonly handlers: ElementHandlers & DocumentHandlers;
}

/** Elements without content (HTML standard, section 13.1.2). */
const VOID: ReadonlySet<string> = new Set([
  "area",
  "base",
  "basefont",
  "bgsound",
  "br",
  "col",
  "embed",
  "frame",
  "hr",
  "img",
  "input",
  "keygen",
  "link",
  "meta",
  "param",
  "source",
  "track",
  "wbr",
]);
/** Their elements end with `/>`. */
const FOREIGN: ReadonlySet<string> = new Set(["svg", "math"]);

export class HTMLRewriter {
  readonly #registered: Registered[] = [];

  on(selector: string, handlers: ElementHandlers): this {
    this.#registered.push({ matches: parseSelector(selector), handlers });
    return this;
  }

  onDocument(handlers: DocumentHandlers): this {
    this.#registered.push({ matches: null, handlers });
    return this;
  }

  /** The response, with a body that is rewritten while it is read. */
  transform(response: Response): Response {
    const { body } = response;
    if (body === null) return response;
    const rewriting = new Rewriting([...this.#registered]);
    const encoder = new TextEncoder();
    const reader = body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
    const output = rewritten(reader, rewriting);
    const stream = new ReadableStream<Uint8Array>({
      async pull(controller) {
        // Until there is output, or the end: a piece of the input may complete no token.
        for (;;) {
          const { done, value } = await output.next();
          if (done === true) {
            controller.close();
            return;
          }
          if (value === "") continue;
          controller.enqueue(encoder.encode(value));
          return;
        }
      },
      async cancel(reason) {
        await reader.cancel(reason);
      },
    });
    const result = new Response(stream, response);
    result.headers.delete("content-length");
    return result;
  }
}

async function* rewritten(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  rewriting: Rewriting,
): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      yield* rewriting.push(decoder.decode(value, { stream: true }), false);
    }
    yield* rewriting.push(decoder.decode(), true);
    return undefined;
  } catch (error) {
    // A body that cannot be cancelled has ended.
    await reader.cancel(error).catch(() => undefined);
    throw error;
  }
}

/** An element on the way from its start tag to its end tag. */
interface Open extends OpenElement {
  readonly element: Element | null;
  /** Handlers whose selector the element matches. */
  readonly active: ReadonlySet<Registered>;
  /** Of its children, so far: all, and by type. */
  children: number;
  readonly types: Map<string, number>;
  /** What is inside is not written. */
  readonly hidesContent: boolean;
}

/** One document. */
class Rewriting {
  readonly #registered: readonly Registered[];
  readonly #tokenizer = new Tokenizer();
  readonly #open: Open[] = [];
  readonly #root = { children: 0, types: new Map<string, number>() };
  /** Pieces of a text have been read, and it may go on. */
  #isInText = false;

  constructor(registered: readonly Registered[]) {
    this.#registered = registered;
  }

  async *push(piece: string, isLast: boolean): AsyncGenerator<string, void> {
    for (const token of await this.#tokenizer.push(piece, isLast)) {
      if (token.kind !== "text" && this.#isInText) yield* this.#text("", true);
      yield* this.#token(token);
    }
    if (!isLast) return;
    if (this.#isInText) yield* this.#text("", true);
    const end = new DocumentEnd();
    for (const { handlers } of this.#registered) await handlers.end?.(end);
    yield* written(end.pieces);
  }

  async *#token(token: Token): AsyncGenerator<string, void> {
    switch (token.kind) {
      case "text":
        yield* this.#text(token.text, false);
        return;
      case "start":
        yield* this.#start(token);
        return;
      case "end":
        yield* this.#end(token.name, token.raw);
        return;
      case "comment":
        yield* this.#comment(new Comment(token.text, token.raw));
        return;
      case "doctype": {
        const doctype = new Doctype(token);
        for (const { handlers } of this.#registered) await handlers.doctype?.(doctype);
        yield token.raw;
        return;
      }
      case "other":
        if (!this.#isHidden) yield token.raw;
    }
  }

  async *#text(text: string, isLast: boolean): AsyncGenerator<string, void> {
    this.#isInText = !isLast;
    const chunk = new TextChunk(text, isLast);
    for (const one of this.#registered) if (this.#applies(one)) await one.handlers.text?.(chunk);
    if (!this.#isHidden) yield* around(chunk, text);
  }

  async *#comment(comment: Comment): AsyncGenerator<string, void> {
    for (const one of this.#registered) if (this.#applies(one)) await one.handlers.comments?.(comment);
    if (!this.#isHidden) yield* around(comment, comment.serialize());
  }

  async *#start(token: Token & { readonly kind: "start" }): AsyncGenerator<string, void> {
    const parent = this.#open.at(-1) ?? this.#root;
    const indexOfType = (parent.types.get(token.name) ?? 0) + 1;
    parent.children += 1;
    parent.types.set(token.name, indexOfType);
    const root = this.#open.findLast(({ name }) => FOREIGN.has(name))?.name ?? null;
    const isForeign = root !== null || FOREIGN.has(token.name);
    const hasContent = isForeign ? !token.isSelfClosing : !VOID.has(token.name);
    const judged = {
      name: token.name,
      attributes: token.attributes.map((attribute) => ({ ...attribute })),
      index: parent.children,
      indexOfType,
    };
    const path = [...this.#open, judged];
    const active = new Set(this.#registered.filter(({ matches }) => matches?.(path) === true));
    const isHidden = this.#isHidden;
    const element = active.size === 0 ? null : new Element(token, root, hasContent);
    if (element === null) {
      if (!isHidden) yield token.raw;
    } else {
      for (const { handlers } of active) await handlers.element?.(element);
      if (!isHidden) yield* startOf(element);
    }
    if (hasContent)
      this.#open.push({
        ...judged,
        element,
        active,
        children: 0,
        types: new Map(),
        hidesContent:
          element !== null && (element.inner !== null || (element.removed && !element.keepsContent)),
      });
    else if (element !== null && !isHidden) yield* written(element.afterPieces);
  }

  /** Elements inside that have no end tag end with it. */
  async *#end(name: string, raw: string): AsyncGenerator<string, void> {
    const at = this.#open.findLastIndex((open) => open.name === name);
    if (at === -1) {
      if (!this.#isHidden) yield raw;
      return;
    }
    while (this.#open.length > at + 1) yield* this.#close(null);
    yield* this.#close(raw);
  }

  /** `raw` null: the element has no end tag. */
  async *#close(raw: string | null): AsyncGenerator<string, void> {
    const open = this.#open.pop();
    if (open === undefined) return;
    const { element, name } = open;
    if (element === null) {
      if (raw !== null && !this.#isHidden) yield raw;
      return;
    }
    const endTag = raw === null ? null : new EndTag(element.isRenamed ? element.tagName : name, raw);
    if (endTag !== null) for (const handler of element.endTagHandlers) await handler(endTag);
    if (this.#isHidden) return;
    if (!element.removed) yield* written(element.appendPieces);
    if (endTag !== null) {
      if (element.removed) {
        yield* written(endTag.beforePieces);
        yield* written(endTag.afterPieces);
      } else yield* around(endTag, endTag.serialize(name));
    }
    yield* written(element.afterPieces);
  }

  #applies(registered: Registered): boolean {
    return registered.matches === null || this.#open.some(({ active }) => active.has(registered));
  }

  get #isHidden(): boolean {
    return this.#open.some(({ hidesContent }) => hidesContent);
  }
}

async function* startOf(element: Element): AsyncGenerator<string, void> {
  yield* written(element.beforePieces);
  if (element.replacement !== null) yield* written(element.replacement);
  else yield element.serialize();
  // Content that stays without its tags keeps what was put before it.
  if (element.replacement === null || element.keepsContent) yield* written(element.prependPieces);
  if (element.replacement === null && element.inner !== null) yield* written(element.inner);
}

interface Surrounded {
  readonly beforePieces: readonly Piece[];
  readonly afterPieces: readonly Piece[];
  readonly replacement: readonly Piece[] | null;
}

async function* around(token: Surrounded, text: string): AsyncGenerator<string, void> {
  yield* written(token.beforePieces);
  if (token.replacement === null) yield text;
  else yield* written(token.replacement);
  yield* written(token.afterPieces);
}

async function* written(pieces: readonly Piece[]): AsyncGenerator<string, void> {
  for (const { content, isHtml } of pieces) {
    const escape = isHtml ? (text: string) => text : escapeHtml;
    if (content instanceof Response || content instanceof ReadableStream) {
      const stream = content instanceof Response ? content.body : content;
      if (stream === null) continue;
      const decoder = new TextDecoder();
      for await (const chunk of stream as ReadableStream<Uint8Array | string>)
        yield escape(typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true }));
      yield escape(decoder.decode());
    } else yield escape(toText(content));
  }
}
