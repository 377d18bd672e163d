/**
 * What the rest of the service may use of a request and a response. Node's own objects have more; whatever is not listed here would tie the
 * areas to node:http and keep out another implementation of this engine.
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
  readonly url?: string | undefined;
  /** Built on first use: the paths that need one header read `rawHeaders`. */
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, as they arrived. */
  readonly rawHeaders: string[];
  readonly httpVersionMajor: number;
  readonly httpVersionMinor: number;
  readonly socket: Duplex & {
    readonly remoteAddress?: string | undefined;
    readonly localPort?: number | undefined;
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
  getHeaderNames(): string[];
  removeHeader(name: string): void;
  flushHeaders(): void;
}

/** For libraries that are typed for Node's class and use no more of it than `HttpRequest` has, such as the handshake of `ws`. */
export function toIncomingMessage(request: HttpRequest): IncomingMessage {
  return request as IncomingMessage;
}
