/**
 * An exchange whose response is translated on its way to the call: the call receives a response in the client's dialect, and retries,
 * logs, cache and limits treat it like any other.
 *
 * Invariants:
 * 1. A successful response that is not a stream is passed on when it is complete and translated. Its head does not go to the client
 *    before, so a response that cannot be translated is an ordinary failure, after which another attempt may follow.
 * 2. A stream is translated event by event as its bytes arrive. Every write to the client ends at the end of an event.
 * 3. A stream that breaks off, or that the provider ends with an error, is a failure. `cut` has the error event of the client's dialect,
 *    for a call that cannot try another model because its response has begun.
 * 4. A client whose dialect has an event for the beginning gets it with the head, unless the call may still go to another target.
 * 5. While a stream is silent, the client gets a comment every 15 s, unless it has stopped reading.
 * 6. Usage is read from the provider's bytes.
 * 7. Long responses that are not streams take turns at the event loop (`CallShare`).
 * 8. A response that is not a stream, and what a stream has to keep, count in the caller's share of the memory. Without room the attempt is refused.
 */
import { ERROR_TABLE, type SignalboxError } from "@signalbox/protocol";
import type { NeutralError, StreamTranslator } from "@signalbox/translate";
import { overloaded } from "../../core/overload.ts";
import {
  createUsageTap,
  NO_USAGE,
  type ResponseHead,
  type UpstreamExchange,
  UpstreamFailure,
  type UpstreamHandler,
  type UsageTap,
} from "../../engines/relay/index.ts";
import type { CallShare } from "../step/call-share.ts";
import type { ConvertedExchange } from "../step/translation.ts";
import { PING, PING_MS } from "./stream-ping.ts";

/** Translates one response. */
export interface ResponseTranslation {
  /** Whether the client asked for a stream. */
  readonly isStream: boolean;
  /** Throws when the body is no response of the provider's dialect. */
  readonly translate: (body: unknown) => object;
  /** The whole response as the text of a stream. Throws as `translate`. */
  readonly translateAsStream: (body: unknown) => string;
  readonly translateError: (status: number, body: unknown) => object;
  readonly createStream: () => StreamTranslator;
}

/** Longer responses that are not streams are refused: they have to be in memory as a whole. */
const MAX_WHOLE_BYTES = 32 * 1024 * 1024;
/** What is made of the bytes is in memory beside them. */
const COPIES = 2;
/** Streams that keep no more are not counted. */
const USUAL_LENGTH = 64 * 1024;
/** Of a longer error the beginning is translated. */
const MAX_ERROR_BYTES = 256 * 1024;
const NO_BYTES = Buffer.from("");
const EVENT_STREAM = "text/event-stream";
const JSON_TYPE = "application/json; charset=utf-8";
/** They describe the body as the provider sent it. */
const BODY_HEADERS: ReadonlySet<string> = new Set([
  "content-encoding",
  "content-length",
  "content-md5",
  "content-type",
  "digest",
  "etag",
]);

const { gateway_provider_unreachable: unreachable, gateway_provider_timeout: timeout } = ERROR_TABLE;
const BROKEN: NeutralError = {
  status: unreachable.status,
  kind: "server",
  message: "The provider broke off the response",
  code: String(unreachable.code),
};
/** The gateway itself has ended the stream. */
function ended({ status, code, message }: SignalboxError): NeutralError {
  return { status, kind: "invalid_request", message, code: String(code), type: "gateway_error" };
}

const STALLED: NeutralError = {
  status: timeout.status,
  kind: "timeout",
  message: "The provider stopped sending the response",
  code: String(timeout.code),
};

type Mode =
  | { readonly kind: "head" }
  | { readonly kind: "stream"; readonly translator: StreamTranslator }
  | { readonly kind: "whole"; readonly head: ResponseHead }
  | { readonly kind: "error"; readonly status: number }
  | { readonly kind: "ended" };

export class TranslatedExchange implements ConvertedExchange, UpstreamHandler {
  readonly tap: UsageTap = {
    push: () => undefined,
    end: () => this.#tap?.end() ?? { usage: NO_USAGE, model: null },
  };
  readonly #translation: ResponseTranslation;
  readonly #share: CallShare;
  readonly #handler: UpstreamHandler;
  readonly #exchange: UpstreamExchange;
  #mode: Mode = { kind: "head" };
  #tap: UsageTap | null = null;
  #translator: StreamTranslator | null = null;
  /** The end of a stream that the provider ended with an error. */
  #errorText: string | null = null;
  #chunks: Buffer[] = [];
  #size = 0;
  #heldBytes = 0;
  #pings: NodeJS.Timeout | undefined;
  #isSilent = true;
  #isPaused = false;

  constructor(
    translation: ResponseTranslation,
    share: CallShare,
    send: (handler: UpstreamHandler) => UpstreamExchange,
    handler: UpstreamHandler,
  ) {
    this.#translation = translation;
    this.#share = share;
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
    this.#end();
    this.#exchange.abort();
  }

  onHead(head: ResponseHead): void {
    const { status } = head;
    const type = head.contentType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
    if (status >= 400) {
      this.#mode = { kind: "error", status };
      this.#handler.onHead(withBody(head, JSON_TYPE));
      return;
    }
    this.#tap = createUsageTap(head.contentType);
    const isStream = type === EVENT_STREAM;
    // A provider that does not stream a model answers with JSON; a stream for a client that wants a whole answer is no answer.
    const isOther = isStream
      ? !this.#translation.isStream
      : this.#translation.isStream && !type.endsWith("json");
    if (isEncoded(head) || status === 204 || isOther) {
      this.#fail(new UpstreamFailure("broken", `the provider answered ${status} with ${type || "no type"}`));
    } else if (isStream) {
      this.#translator = this.#translation.createStream();
      this.#mode = { kind: "stream", translator: this.#translator };
      this.#pings = setInterval(() => this.#ping(), PING_MS);
      this.#handler.onHead(withBody(head, `${EVENT_STREAM}; charset=utf-8`));
    } else {
      this.#mode = { kind: "whole", head };
    }
  }

  onBody(chunk: Buffer, isLast: boolean): void {
    const mode = this.#mode;
    this.#tap?.push(chunk);
    if (mode.kind === "stream") this.#passEvents(mode.translator, chunk, isLast);
    else if (mode.kind === "whole") this.#keepWhole(mode.head, chunk, isLast);
    else if (mode.kind === "error") this.#keepError(mode.status, chunk, isLast);
  }

  onReadEnd(): void {
    if (this.#mode.kind === "stream") this.#handler.onReadEnd();
  }

  onFailure(failure: UpstreamFailure): void {
    const mode = this.#mode;
    if (mode.kind === "ended") return;
    this.#end();
    this.#handler.onFailure(failure);
  }

  begin(): Buffer | null {
    const text = this.#mode.kind === "stream" ? this.#mode.translator.begin() : "";
    if (text === "") return null;
    this.#isSilent = false;
    return Buffer.from(text);
  }

  cut(isTimeout: boolean, error: SignalboxError | null = null): Buffer | null {
    const fault = error === null ? (isTimeout ? STALLED : BROKEN) : ended(error);
    const text = this.#errorText ?? this.#translator?.fail(fault) ?? "";
    return text === "" ? null : Buffer.from(text);
  }

  #passEvents(translator: StreamTranslator, chunk: Buffer, isLast: boolean): void {
    let text = translator.write(chunk);
    if (isLast) text += translator.end();
    if (translator.error !== null) {
      this.#errorText = text;
      if (!isLast) this.#exchange.abort();
      this.#end();
      this.#handler.onFailure(new UpstreamFailure("broken", translator.error.message));
    } else if (isLast) {
      this.#end();
      this.#handler.onBody(Buffer.from(text), true);
    } else if (translator.heldLength <= USUAL_LENGTH || this.#hasRoom(translator.heldLength)) {
      this.#write(text);
    }
  }

  #keepWhole(head: ResponseHead, chunk: Buffer, isLast: boolean): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#size > MAX_WHOLE_BYTES) {
      this.#fail(new UpstreamFailure("broken", "the response is too large to be translated"));
      return;
    }
    if (!this.#hasRoom(this.#size) || !isLast) return;
    this.#share.beginWork(this.#size, () => {
      // The call may have ended meanwhile.
      if (this.#mode.kind === "whole") this.#passWhole(head);
    });
  }

  #passWhole(head: ResponseHead): void {
    let body: Buffer;
    try {
      const value: unknown = JSON.parse(this.#take().toString("utf8"));
      const { isStream, translate, translateAsStream } = this.#translation;
      body = Buffer.from(isStream ? translateAsStream(value) : JSON.stringify(translate(value)));
    } catch (cause) {
      this.#fail(new UpstreamFailure("broken", "the response cannot be translated", cause));
      return;
    }
    this.#end();
    const type = this.#translation.isStream ? `${EVENT_STREAM}; charset=utf-8` : JSON_TYPE;
    this.#handler.onHead(withBody(head, type, body.length));
    this.#handler.onBody(body, true);
  }

  #keepError(status: number, chunk: Buffer, isLast: boolean): void {
    if (this.#size < MAX_ERROR_BYTES) this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (!isLast) return;
    const body = this.#translation.translateError(status, parseError(this.#take()));
    this.#end();
    this.#handler.onBody(Buffer.from(JSON.stringify(body)), true);
  }

  /** Fails the attempt if the memory has no room. What is held is released with the response of the call. */
  #hasRoom(length: number): boolean {
    const more = COPIES * length - this.#heldBytes;
    if (more <= 0) return true;
    if (!this.#share.holdMemory(more)) {
      const message = "There is no memory for the response of the provider";
      this.#fail(new UpstreamFailure("refused", message, overloaded(message)));
      return false;
    }
    this.#heldBytes += more;
    return true;
  }

  #take(): Buffer {
    const bytes = Buffer.concat(this.#chunks);
    this.#chunks = [];
    return bytes;
  }

  #write(text: string): void {
    if (text === "") return;
    this.#isSilent = false;
    this.#handler.onBody(Buffer.from(text), false);
  }

  #ping(): void {
    if (this.#isSilent && !this.#isPaused) this.#handler.onBody(PING, false);
    this.#isSilent = true;
  }

  #fail(failure: UpstreamFailure): void {
    this.#exchange.abort();
    this.#end();
    this.#handler.onFailure(failure);
  }

  #end(): void {
    clearInterval(this.#pings);
    this.#mode = { kind: "ended" };
    this.#chunks = [];
  }
}

/** The provider's headers with another body. */
function withBody(head: ResponseHead, contentType: string, length?: number): ResponseHead {
  const rawHeaders = ["content-type", contentType];
  if (length !== undefined) rawHeaders.push("content-length", String(length));
  for (let i = 0; i + 1 < head.rawHeaders.length; i += 2) {
    const name = head.rawHeaders[i] ?? "";
    if (!BODY_HEADERS.has(name.toLowerCase())) rawHeaders.push(name, head.rawHeaders[i + 1] ?? "");
  }
  return { ...head, rawHeaders, contentType };
}

function isEncoded({ rawHeaders }: ResponseHead): boolean {
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() === "content-encoding" && rawHeaders[i + 1] !== "identity") return true;
  }
  return false;
}

/** A JSON value, or the text of an error that is none (a proxy's page). */
function parseError(bytes: Buffer): unknown {
  if (bytes.equals(NO_BYTES)) return null;
  const text = bytes.toString("utf8");
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
