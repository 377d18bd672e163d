/**
 * Requests at a fixed rate, however long the answers take: a server that slows down gets no rest, and the latencies of an interval are those that clients
 * would have seen.
 */
import { Agent, request as sendRequest } from "node:http";
import { percentile } from "../support/statistics.ts";

export interface PacedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface PacedKind {
  readonly name: string;
  readonly perSecond: number;
  next(): PacedRequest;
}

export interface IntervalFigures {
  readonly answered: number;
  /** No answer, or a status of 400 and above. */
  readonly failed: number;
  /** Each kind of failure once. */
  readonly failures: readonly string[];
  readonly p50: number;
  readonly p99: number;
}

/** Requests of one kind that wait for an answer. With more, those that are due are counted as failed: the process must not fill its own memory. */
const MAX_PENDING = 1000;
const TICK_MS = 10;
const MAX_LATE_MS = 200;
const TIMEOUT_MS = 30_000;

export class PacedLoad {
  readonly #port: number;
  readonly #kind: PacedKind;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 });
  readonly #timer: NodeJS.Timeout;
  #tickedAt = performance.now();
  /** Requests that are due; the fraction is carried on. */
  #due = 0;
  #pending = 0;
  #failed = 0;
  readonly #failures = new Set<string>();
  #latencies: number[] = [];

  constructor(port: number, kind: PacedKind) {
    this.#port = port;
    this.#kind = kind;
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  /** The figures since the last call. */
  take(): IntervalFigures {
    const latencies = this.#latencies.sort((a, b) => a - b);
    const figures = {
      answered: latencies.length,
      failed: this.#failed,
      failures: [...this.#failures],
      p50: percentile(latencies, 0.5),
      p99: percentile(latencies, 0.99),
    };
    this.#latencies = [];
    this.#failed = 0;
    this.#failures.clear();
    return figures;
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#agent.destroy();
  }

  #tick(): void {
    const now = performance.now();
    // After a pause of this process, what was due meanwhile is not sent at once: no client would have.
    const elapsedMs = Math.min(now - this.#tickedAt, MAX_LATE_MS);
    this.#tickedAt = now;
    this.#due += (elapsedMs / 1000) * this.#kind.perSecond;
    for (; this.#due >= 1; this.#due--) {
      if (this.#pending < MAX_PENDING) this.#send(this.#kind.next());
      else this.#fail("not sent: too many wait for an answer");
    }
  }

  #fail(reason: string): void {
    this.#failed += 1;
    this.#failures.add(reason);
  }

  #send({ method, path, headers = {}, body = "" }: PacedRequest): void {
    const startedAt = performance.now();
    let isSettled = false;
    this.#pending += 1;
    const settle = (failure: string | null) => {
      if (isSettled) return;
      isSettled = true;
      this.#pending -= 1;
      if (failure === null) this.#latencies.push(performance.now() - startedAt);
      else this.#fail(failure);
    };
    const length = { "content-length": String(Buffer.byteLength(body)) };
    const options = {
      port: this.#port,
      host: "127.0.0.1",
      method,
      path,
      agent: this.#agent,
      timeout: TIMEOUT_MS,
    };
    const request = sendRequest({ ...options, headers: { ...headers, ...length } }, (response) => {
      response.resume();
      const { statusCode = 0 } = response;
      response.once("end", () => settle(statusCode < 400 ? null : `status ${statusCode}`));
      response.once("error", (error) => settle(error.message));
    });
    request.once("timeout", () => request.destroy(new Error("no answer in time")));
    request.once("error", (error) =>
      settle(request.reusedSocket ? `${error.message}, on a used connection` : error.message),
    );
    request.once("close", () => settle("closed without an answer"));
    request.end(body);
  }
}
