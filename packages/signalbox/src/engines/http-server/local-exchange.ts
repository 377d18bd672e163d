/**
 * A request and a response without a connection: code of this process calls an area as a client would.
 *
 * Invariants:
 * 1. `head` settles once: with the head of the response, or with an error if the response was destroyed before.
 * 2. The body is read at the reader's pace: a write completes when the reader has taken its bytes.
 * 3. Cancelling the body, or aborting the signal, closes the response, as a client that disconnects does.
 */
import type { OutgoingHttpHeader } from "node:http";
import { type Duplex, PassThrough, Readable, Writable } from "node:stream";
import type { HeaderList, HttpRequest, HttpResponse } from "./http-exchange.ts";

export interface LocalHead {
  readonly status: number;
  /** Names in the spelling of the writer; a name may occur several times. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Null if the response ended without a body. */
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | null;
}

export class LocalRequest extends Readable implements HttpRequest {
  method: string | undefined;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly rawHeaders: string[];
  readonly httpVersionMajor = 1;
  readonly httpVersionMinor = 1;
  readonly socket: Duplex = new PassThrough();
  #body: Buffer | null;

  /** `headers` have lower-case names; the length of the body is added. */
  constructor(
    method: string,
    target: string,
    headers: Readonly<Record<string, string>>,
    body: Uint8Array | null,
  ) {
    super();
    this.method = method;
    this.url = target;
    this.headers = { host: "localhost", ...headers };
    if (body !== null) this.headers["content-length"] = String(body.length);
    this.rawHeaders = Object.entries(this.headers).flat();
    this.#body = body === null ? null : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  }

  get complete(): boolean {
    return this.#body === null;
  }

  /** The request itself. */
  get body(): this {
    return this;
  }

  collect(): boolean {
    return false;
  }

  stopCollecting(): void {}

  override _read(): void {
    const body = this.#body;
    this.#body = null;
    if (body !== null && body.length > 0) this.push(body);
    this.push(null);
  }
}

export class LocalResponse extends Writable implements HttpResponse {
  statusCode = 200;
  statusMessage = "";
  shouldKeepAlive = true;
  headersSent = false;
  readonly #set = new Map<string, readonly string[]>();
  readonly #head = Promise.withResolvers<LocalHead>();
  #controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | null = null;
  /** Completes the write whose bytes the reader has not taken. */
  #taken: (() => void) | null = null;

  get head(): Promise<LocalHead> {
    return this.#head.promise;
  }

  writeHead(status: number, headers: HeaderList = {}): this {
    this.statusCode = status;
    const given = pairsOf(headers);
    const replaced = new Set(given.map(([name]) => name.toLowerCase()));
    const earlier = [...this.#set].filter(([name]) => !replaced.has(name));
    const all = [
      ...earlier.flatMap(([name, values]) => values.map((value) => [name, value] as const)),
      ...given,
    ];
    this.headersSent = true;
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => {
          const taken = this.#taken;
          this.#taken = null;
          taken?.();
        },
        cancel: () => {
          this.#controller = null;
          this.destroy();
        },
      },
      { highWaterMark: 0 },
    );
    const isEmpty = status === 204 || status === 205 || status === 304;
    this.#head.resolve({ status, headers: all, body: isEmpty ? null : body });
    return this;
  }

  setHeader(name: string, value: string | readonly string[]): this {
    this.#set.set(name.toLowerCase(), typeof value === "string" ? [value] : value);
    return this;
  }

  appendHeader(name: string, value: string): this {
    const key = name.toLowerCase();
    this.#set.set(key, [...(this.#set.get(key) ?? []), value]);
    return this;
  }

  /** A reader of this process has the head and the body; there is no place for trailers. */
  addTrailers(): void {}

  getHeaderNames(): string[] {
    return [...this.#set.keys()];
  }

  removeHeader(name: string): void {
    this.#set.delete(name.toLowerCase());
  }

  flushHeaders(): void {
    if (!this.headersSent) this.writeHead(this.statusCode);
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: () => void): void {
    this.flushHeaders();
    if (this.#controller === null) {
      callback();
      return;
    }
    this.#taken = callback;
    this.#controller.enqueue(new Uint8Array(chunk));
  }

  override _final(callback: () => void): void {
    this.flushHeaders();
    this.#controller?.close();
    this.#controller = null;
    callback();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    const broken = error ?? new Error("the response ended early");
    this.#head.reject(broken);
    this.#controller?.error(broken);
    this.#controller = null;
    this.#taken = null;
    callback(null);
  }
}

function pairsOf(headers: HeaderList): [string, string][] {
  if (!Array.isArray(headers))
    return Object.entries(headers).flatMap(([name, value]) =>
      textsOf(value).map((text): [string, string] => [name, text]),
    );
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < headers.length; i += 2)
    for (const text of textsOf(headers[i + 1])) pairs.push([String(headers[i]), text]);
  return pairs;
}

function textsOf(value: OutgoingHttpHeader | undefined): string[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value.map(String) : [String(value)];
}
