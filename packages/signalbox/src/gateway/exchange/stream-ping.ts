/**
 * Keeps a silent event stream open: load balancers close connections without traffic, many after 60 s, and models may think longer than
 * that. A comment is no event, and clients ignore it.
 */
import type {
  ResponseHead,
  UpstreamExchange,
  UpstreamFailure,
  UpstreamHandler,
} from "../../engines/relay/index.ts";
import type { ConvertedExchange } from "../step/translation.ts";

export const PING = Buffer.from(": ping\n\n");
export const PING_MS = 15_000;

const NEWLINE = 0x0a;
const RETURN = 0x0d;

/** An exchange that passes all bytes unchanged, and adds a comment after each 15 s of silence that begins at the end of an event. */
export class PingedExchange implements ConvertedExchange, UpstreamHandler {
  /** The call reads the usage itself. */
  readonly tap = null;
  readonly #handler: UpstreamHandler;
  readonly #exchange: UpstreamExchange;
  #pings: NodeJS.Timeout | undefined;
  #isSilent = true;
  #isPaused = false;
  /** The last bytes end an event; true also before the first one. */
  #isBetweenEvents = true;

  constructor(send: (handler: UpstreamHandler) => UpstreamExchange, handler: UpstreamHandler) {
    this.#handler = handler;
    this.#exchange = send(this);
  }

  pause(): void {
    this.#isPaused = true;
    this.#exchange.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#exchange.resume();
  }

  abort(): void {
    clearInterval(this.#pings);
    this.#exchange.abort();
  }

  begin(): null {
    return null;
  }

  cut(): null {
    return null;
  }

  onHead(head: ResponseHead): void {
    if (head.status < 400 && head.contentType.toLowerCase().startsWith("text/event-stream")) {
      this.#pings = setInterval(() => this.#ping(), PING_MS);
    }
    this.#handler.onHead(head);
  }

  onBody(chunk: Buffer, isLast: boolean): void {
    if (isLast) clearInterval(this.#pings);
    if (chunk.length > 0) {
      this.#isSilent = false;
      this.#isBetweenEvents = endsEvent(chunk);
    }
    this.#handler.onBody(chunk, isLast);
  }

  onReadEnd(): void {
    this.#handler.onReadEnd();
  }

  onFailure(failure: UpstreamFailure): void {
    clearInterval(this.#pings);
    this.#handler.onFailure(failure);
  }

  #ping(): void {
    if (this.#isSilent && !this.#isPaused && this.#isBetweenEvents) this.#handler.onBody(PING, false);
    this.#isSilent = true;
  }
}

/** Whether the chunk ends with an empty line. A chunk of one byte is taken for the middle of an event. */
function endsEvent(chunk: Buffer): boolean {
  if (chunk.at(-1) !== NEWLINE) return false;
  const before = chunk.at(-2);
  return before === NEWLINE || (before === RETURN && chunk.at(-3) === NEWLINE);
}
