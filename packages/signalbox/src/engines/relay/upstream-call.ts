/**
 * One request to an upstream and its response, independent of which connection carries it: a call may move to a fresh connection
 * when the pooled one turned out to be dead.
 *
 * States: waiting (for a connection or for the response's head) → receiving → ended. `ended` is final and reached exactly once: by
 * the last body chunk, by a failure, or by `abort`; after it no event is delivered.
 */
import type { Connection } from "./connection.ts";
import type { Origin } from "./origin.ts";
import { copyForRelay } from "./relay-memory.ts";
import type { RequestBody } from "./request-body.ts";
import type { ResponseEvents, ResponseHead } from "./response-parser.ts";
import type { UpstreamFailure } from "./upstream-failure.ts";

export interface UpstreamRequest {
  readonly origin: Origin;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** `name: value\r\n` lines without `host` and without framing. */
  readonly headerLines: string;
  readonly body: RequestBody;
}

/** RFC 9110, section 9.2.2: asked twice, they do what they do asked once. */
const IDEMPOTENT: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);
const IDEMPOTENCY_KEY = /(?:^|\n)idempotency-key:/i;

/** Whether a server that may have had the request already may be sent it again without being asked to. */
export function mayRepeat({ method, headerLines, body }: UpstreamRequest): boolean {
  return body.kind !== "streamed" && (IDEMPOTENT.has(method) || IDEMPOTENCY_KEY.test(headerLines));
}

export interface UpstreamHandler extends ResponseEvents {
  /** All that one read brought has been delivered: what was held back for more should go out now. */
  onReadEnd(): void;
  onFailure(failure: UpstreamFailure): void;
}

/** What the relay holds of a running exchange; also implemented by providers that answer locally. */
export interface UpstreamExchange {
  /** Stops reading; the upstream feels it through its full socket. */
  pause(): void;
  resume(): void;
  /** Gives up at once; no further event. */
  abort(): void;
}

export class UpstreamCall implements UpstreamExchange, ResponseEvents {
  readonly request: UpstreamRequest;
  readonly #handler: UpstreamHandler;
  #connection: Connection | null = null;
  #state: "waiting" | "receiving" | "ended" = "waiting";
  #isPaused = false;

  constructor(request: UpstreamRequest, handler: UpstreamHandler) {
    this.request = request;
    this.#handler = handler;
  }

  get isEnded(): boolean {
    return this.#state === "ended";
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  attach(connection: Connection): void {
    this.#connection = connection;
  }

  // Once a call has ended, its connection may carry another one.
  pause(): void {
    if (this.#state === "ended") return;
    this.#isPaused = true;
    this.#connection?.pause();
  }

  resume(): void {
    if (this.#state === "ended") return;
    this.#isPaused = false;
    this.#connection?.resume();
  }

  abort(): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    this.#connection?.destroy();
  }

  onHead(head: ResponseHead): void {
    if (this.#state !== "waiting") return;
    this.#state = "receiving";
    this.#handler.onHead(head);
  }

  onBody(chunk: Buffer, isLast: boolean): void {
    if (this.#state !== "receiving") return;
    if (isLast) this.#state = "ended";
    // The chunk lies in the buffer that the next read of any connection goes into.
    this.#handler.onBody(chunk.length === 0 ? chunk : copyForRelay(chunk), isLast);
  }

  onReadEnd(): void {
    if (this.#state === "receiving") this.#handler.onReadEnd();
  }

  fail(failure: UpstreamFailure): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    this.#handler.onFailure(failure);
  }
}
