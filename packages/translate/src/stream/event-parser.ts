/**
 * Server-sent events out of bytes that are cut anywhere.
 *
 * 1. Every cut of the same bytes gives the same events: characters of several bytes, line ends of two characters and
 *    lines may be split.
 * 2. A line without an end is kept in pieces and joined once, so that a long event costs linear time.
 * 3. Invalid UTF-8 becomes U+FFFD, as the specification of server-sent events demands.
 */

/** An event longer than this is no answer of a model. Characters. */
const MAX_EVENT_LENGTH = 16 * 1024 * 1024;

export class EventTooLongError extends Error {
  override readonly name = "EventTooLongError";
}

export class EventParser {
  readonly #decoder = new TextDecoder();
  readonly #onEvent: (event: string, data: string) => void;
  /** The beginning of a line whose end has not come. */
  #pieces: string[] = [];
  #length = 0;
  /** A carriage return at the end of the last chunk: a line feed may follow. */
  #isReturnPending = false;
  #event = "";
  #data: string | null = null;

  constructor(onEvent: (event: string, data: string) => void) {
    this.#onEvent = onEvent;
  }

  /** Characters of the event that has not ended. */
  get pendingLength(): number {
    return this.#length + (this.#data?.length ?? 0);
  }

  push(chunk: Uint8Array): void {
    this.#take(this.#decoder.decode(chunk, { stream: true }));
  }

  /** The stream ended. Unlike a browser, an event without its empty line counts: providers forget the last one. */
  end(): void {
    this.#take(this.#decoder.decode());
    if (this.#isReturnPending) this.#take("\n");
    if (this.#pieces.length > 0) this.#takeLine(this.#joined(""));
    this.#dispatch();
  }

  #take(decoded: string): void {
    if (decoded === "") return;
    const text = this.#normalize(decoded);
    let from = 0;
    for (let to = text.indexOf("\n"); to >= 0; to = text.indexOf("\n", from)) {
      const line = text.slice(from, to);
      this.#takeLine(this.#pieces.length === 0 ? line : this.#joined(line));
      from = to + 1;
    }
    if (from < text.length) {
      this.#pieces.push(from === 0 ? text : text.slice(from));
      this.#length += text.length - from;
      if (this.pendingLength > MAX_EVENT_LENGTH) {
        throw new EventTooLongError("an event of the stream is too long");
      }
    }
  }

  /** Line ends as line feeds. A trailing carriage return waits for the next chunk. */
  #normalize(decoded: string): string {
    let text = decoded;
    if (this.#isReturnPending) {
      this.#isReturnPending = false;
      text = text.startsWith("\n") ? text : `\n${text}`;
    }
    if (!text.includes("\r")) return text;
    if (text.endsWith("\r")) {
      this.#isReturnPending = true;
      text = text.slice(0, -1);
    }
    return text.replace(/\r\n?/g, "\n");
  }

  #joined(tail: string): string {
    const line = this.#pieces.join("") + tail;
    this.#pieces = [];
    this.#length = 0;
    return line;
  }

  #takeLine(line: string): void {
    if (line === "") this.#dispatch();
    else if (line.startsWith("data:")) {
      const value = line.slice(line.charCodeAt(5) === 32 ? 6 : 5);
      this.#data = this.#data === null ? value : `${this.#data}\n${value}`;
    } else if (line.startsWith("event:")) this.#event = line.slice(line.charCodeAt(6) === 32 ? 7 : 6);
  }

  #dispatch(): void {
    const data = this.#data;
    const event = this.#event;
    this.#data = null;
    this.#event = "";
    if (data !== null) this.#onEvent(event, data);
  }
}
