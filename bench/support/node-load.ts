/**
 * The load generator in Node.js, on plain sockets. It substitutes the one in C where there is no compiler, and sends the single requests of
 * latency measurements, for which a process each would be too slow.
 */
import { connect, type Socket } from "node:net";
import { withSequence } from "./requests.ts";
import { percentile } from "./statistics.ts";

export interface LoadOptions {
  readonly port: number;
  /** Each has one request in flight. */
  readonly connections: number;
  readonly durationMs: number;
  /** The run ends by time or by number, whichever comes first. */
  readonly maxRequests?: number;
  /** Sent in turn, from the first again after the last. `SEQUENCE_MARKER` in a request is replaced by a number. */
  readonly requests: readonly Buffer[];
  /** The status every response must have; default: any 2xx. */
  readonly status?: number;
}

export interface LoadResult {
  readonly requests: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time that the generator itself used per request, in microseconds. */
  readonly generatorUs: number;
}

export interface GeneratorResult extends LoadResult {
  /** Responses with another status than expected. */
  readonly unexpected: number;
  /** The first of them; 0 if there is none. */
  readonly unexpectedStatus: number;
}

export async function runLoadInNode(options: LoadOptions): Promise<GeneratorResult> {
  const startedAt = performance.now();
  const cpuBefore = process.cpuUsage();
  const run: Run = { options, sent: 0, unexpected: 0, unexpectedStatus: 0, latencies: [], startedAt };
  await Promise.all(Array.from({ length: options.connections }, () => runConnection(run)));
  const seconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  const latencies = run.latencies.sort((a, b) => a - b);
  return {
    requests: latencies.length,
    unexpected: run.unexpected,
    unexpectedStatus: run.unexpectedStatus,
    perSecond: latencies.length / seconds,
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
    generatorUs: (user + system) / latencies.length,
  };
}

/** Sends one request on a connection of its own; returns the milliseconds until the response is complete. */
export async function timeRequest(port: number, request: Buffer): Promise<number> {
  const options = { port, connections: 1, durationMs: 10_000, maxRequests: 1, requests: [request] };
  const { unexpected, p50Ms } = await runLoadInNode(options);
  if (unexpected > 0) throw new Error("a single request was answered with an error");
  return p50Ms;
}

interface Run {
  readonly options: LoadOptions;
  readonly startedAt: number;
  readonly latencies: number[];
  sent: number;
  unexpected: number;
  unexpectedStatus: number;
}

function runConnection(run: Run): Promise<void> {
  const { port, requests, durationMs, maxRequests = Infinity, status: expected } = run.options;
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(port, "127.0.0.1");
    socket.setNoDelay(true);
    const response = new ResponseScanner();
    let sentAt = 0;
    const next = () => {
      if (performance.now() >= run.startedAt + durationMs || run.sent >= maxRequests) {
        socket.end();
        resolve();
        return;
      }
      const request = requests[run.sent++ % requests.length] ?? Buffer.alloc(0);
      sentAt = performance.now();
      socket.write(withSequence(request));
    };
    socket.once("connect", next);
    socket.on("data", (chunk: Buffer) => {
      const status = response.push(chunk);
      if (status === null) return;
      run.latencies.push(performance.now() - sentAt);
      if (expected === undefined ? Math.floor(status / 100) !== 2 : status !== expected) {
        if (run.unexpected === 0) run.unexpectedStatus = status;
        run.unexpected += 1;
      }
      next();
    });
    socket.once("error", reject);
    socket.once("close", () =>
      reject(new Error("the server closed a connection before its response was complete")),
    );
  });
}

const CHUNKED_END = Buffer.from("\r\n0\r\n\r\n");

/** Finds the end of a response, by Content-Length or the last chunk. */
class ResponseScanner {
  #head = "";
  #tail: Buffer = Buffer.alloc(0);
  #status = 0;
  #missing = -1;
  #isChunked = false;

  /** The status once the response is complete, else null. */
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
