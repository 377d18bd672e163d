/**
 * The parts of a request and a response that the rest of the service may use. Any other property of Node's objects would make the areas depend on
 * node:http, and requests that this engine parses itself do not have it.
 */
import type {
  IncomingHttpHeaders,
  IncomingMessage,
  OutgoingHttpHeader,
  OutgoingHttpHeaders,
} from "node:http";
import type { Duplex, Readable } from "node:stream";
import type { BodyReceiver } from "./collected-body.ts";

export interface HttpRequest {
  method?: string | undefined;
  url?: string | undefined;
  /** Built on first use: the paths that need one header read `rawHeaders`. */
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, as they arrived. */
  readonly rawHeaders: string[];
  readonly httpVersionMajor: number;
  readonly httpVersionMinor: number;
  readonly socket: Duplex & {
    readonly remoteAddress?: string | undefined;
    readonly localPort?: number | undefined;
    /** True for a connection that this server has decrypted. */
    readonly encrypted?: boolean | undefined;
  };
  /** True once the whole request has been received. */
  readonly complete: boolean;
  /** As a stream; `readBody` is the cheaper way to a small one. */
  readonly body: Readable;
  /** For `readBody`: passes the whole body to the receiver. False, with nothing done, if it has to be read as a stream. */
  collect(receiver: BodyReceiver): boolean;
  /** Drops what was collected; no more of the body is read. */
  stopCollecting(): void;
}

export type HeaderList = OutgoingHttpHeaders | OutgoingHttpHeader[];

/** Emits `finish`, `close` and `drain` as Node's streams do. */
export interface HttpResponse extends NodeJS.WritableStream {
  statusCode: number;
  statusMessage: string;
  readonly headersSent: boolean;
  /** False: the connection is closed after this response. */
  shouldKeepAlive: boolean;
  readonly destroyed: boolean;
  readonly writableEnded: boolean;
  /** True when every byte was passed to the system. */
  readonly writableFinished: boolean;
  writeHead(status: number, headers?: HeaderList): this;
  setHeader(name: string, value: string | readonly string[]): this;
  /** Adds a value to those of the name. */
  appendHeader(name: string, value: string): this;
  getHeaderNames(): string[];
  removeHeader(name: string): void;
  flushHeaders(): void;
  /** Fields after the body; only in a response without a length. */
  addTrailers(trailers: readonly [string, string][]): void;
  end(callback?: () => void): this;
  end(body: string | Uint8Array | undefined, callback?: () => void): this;
  end(body: string, encoding?: BufferEncoding, callback?: () => void): this;
  /** Closes the connection. */
  destroy(error?: Error): this;
}

/** A response on a connection, as the application of the listener sees it. */
export interface ServedResponse extends HttpResponse {
  readonly req: HttpRequest;
}

/** For libraries with Node's class in their types that use only properties of `HttpRequest`, such as the handshake of `ws`. */
export function toIncomingMessage(request: HttpRequest): IncomingMessage {
  return request as unknown as IncomingMessage;
}
