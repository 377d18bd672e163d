/**
 * The parts of a request and a response that the rest of the service may use. Any other property of Node's objects would make the areas depend on
 * node:http and prevent another implementation of this engine.
 */
import type {
  IncomingHttpHeaders,
  IncomingMessage,
  OutgoingHttpHeader,
  OutgoingHttpHeaders,
} from "node:http";
import type { Duplex, Readable, Writable } from "node:stream";

export interface HttpRequest extends Readable {
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
}

export type HeaderList = OutgoingHttpHeaders | OutgoingHttpHeader[];

export interface HttpResponse extends Writable {
  statusCode: number;
  statusMessage: string;
  readonly headersSent: boolean;
  /** False: the connection is closed after this response. */
  shouldKeepAlive: boolean;
  writeHead(status: number, headers?: HeaderList): this;
  setHeader(name: string, value: string | readonly string[]): this;
  /** Adds a value to those of the name. */
  appendHeader(name: string, value: string): this;
  getHeaderNames(): string[];
  removeHeader(name: string): void;
  flushHeaders(): void;
  /** Fields after the body; only in a response without a length. */
  addTrailers(trailers: readonly [string, string][]): void;
}

/** For libraries with Node's class in their types that use only properties of `HttpRequest`, such as the handshake of `ws`. */
export function toIncomingMessage(request: HttpRequest): IncomingMessage {
  return request as IncomingMessage;
}
