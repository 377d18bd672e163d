/**
 * A lean HTTP/1.1 load generator on plain sockets: N connections, each with one request in flight. It does far less per request than
 * any server under test, so that the server is what is measured. Runs end by count or by time, whichever comes first.
 */
import { connect, type Socket } from "node:net";

export interface LoadOptions {
  readonly port: number;
  readonly host?: string;
  readonly connections: number;
  readonly durationMs: number;
  readonly maxRequests?: number;
  /** The next request as bytes; called once per request, so build it cheaply. */
  readonly request: (sequence: number) => Buffer;
  /** Default: any 2xx. */
  readonly isExpected?: (status: number) => boolean;
}

export interface LoadResult {
  readonly requests: number;
  readonly unexpected: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const latencies: number[] = [];
  const run = { sent: 0, unexpected: 0, endsAt: performance.now() + options.durationMs };
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: options.connections }, () => runConnection(options, run, latencies)),
  );
  const seconds = (performance.now() - startedAt) / 1000;
  latencies.sort((a, b) => a - b);
  return {
    requests: latencies.length,
    unexpected: run.unexpected,
    perSecond: latencies.length / seconds,
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
  };
}

export function buildRequest(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body: string | Buffer = "",
): Buffer {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const lines = Object.entries({
    host: "127.0.0.1",
    ...headers,
    ...(bytes.length === 0 && method === "GET" ? {} : { "content-length": String(bytes.length) }),
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`), bytes]);
}

export function percentile(sorted: readonly number[], fraction: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))] ?? Number.NaN;
}

interface Run {
  sent: number;
  unexpected: number;
  readonly endsAt: number;
}

function runConnection(options: LoadOptions, run: Run, latencies: number[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(options.port, options.host ?? "127.0.0.1");
    socket.setNoDelay(true);
    const response = new ResponseScanner();
    const isExpected = options.isExpected ?? ((status: number) => status >= 200 && status < 300);
    let sentAt = 0;
    const next = () => {
      if (performance.now() >= run.endsAt || run.sent >= (options.maxRequests ?? Infinity)) {
        socket.end();
        resolve();
        return;
      }
      sentAt = performance.now();
      socket.write(options.request(run.sent++));
    };
    socket.once("connect", next);
    socket.on("data", (chunk: Buffer) => {
      const status = response.push(chunk);
      if (status === null) return;
      latencies.push(performance.now() - sentAt);
      if (!isExpected(status)) run.unexpected += 1;
      next();
    });
    socket.once("error", reject);
    socket.once("close", () => resolve());
  });
}

const CHUNKED_END = Buffer.from("\r\n0\r\n\r\n");

/** Tells when one response is complete, by Content-Length or the last chunk. */
class ResponseScanner {
  #head = "";
  #tail: Buffer = Buffer.alloc(0);
  #status = 0;
  #missing = -1;
  #isChunked = false;

  /** The status once the response is whole, else null. */
  push(chunk: Buffer): number | null {
    let body = chunk;
    if (this.#status === 0) {
      this.#head += chunk.toString("latin1");
      const end = this.#head.indexOf("\r\n\r\n");
      if (end === -1) return null;
      const head = this.#head.slice(0, end + 2);
      this.#status = Number(head.slice(9, 12));
      const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
      this.#isChunked = length === undefined && /\r\ntransfer-encoding: *chunked/i.test(head);
      body = Buffer.from(this.#head.slice(end + 4), "latin1");
      this.#missing = Number(length ?? 0);
      this.#tail = Buffer.from("\r\n");
    }
    if (this.#isChunked) {
      this.#tail = Buffer.concat([this.#tail, body]).subarray(-CHUNKED_END.length);
      return this.#tail.equals(CHUNKED_END) ? this.#finish() : null;
    }
    this.#missing -= body.length;
    return this.#missing <= 0 ? this.#finish() : null;
  }

  #finish(): number {
    const status = this.#status;
    this.#status = 0;
    this.#head = "";
    return status;
  }
}
