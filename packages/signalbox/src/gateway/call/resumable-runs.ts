/**
 * Streams that outlive the connection of their caller (`gw-aig-resumable: true`). The call writes into a run, and connections read from it: the one that began
 * it, and later ones with `GET …/run/{id}/resume?from={events}`.
 *
 * Invariants:
 * 1. A call whose response is no stream of events behaves as without the option: it ends with its connection.
 * 2. From event N on, every connection gets the bytes that the first one got, or would have got.
 * 3. A run is found only at its gateway and with the token that it was begun with.
 * 4. A run ends as its call does: complete, or broken off. One that finds no memory, or is longer than `MAX_BYTES`, is broken off.
 */
import { randomBytes } from "node:crypto";
import { SignalboxError } from "@signalbox/protocol";
import { overloaded } from "../../core/overload.ts";
import { type Share, SharedPlaces } from "../../core/shared-pool.ts";
import { type HttpResponse, LocalResponse, type MemoryShare } from "../../engines/http-server/index.ts";
import { holderOf } from "../keys/caller-token.ts";
import { malformed } from "../step/malformed.ts";
import type { Arrival, PlannedCall } from "./call-start.ts";

/** As long as the hosted original keeps them. */
const KEEP_MS = 330_000;
/** Some hundred thousand tokens of the wordiest dialect. */
const MAX_BYTES = 32 * 1024 * 1024;
/** Of the list and the object, for each piece that is kept: a provider may send single bytes. */
const PIECE_BYTES = 256;
/** Of all accounts, with those that have ended and are kept. */
const MAX_RUNS = 1000;
const RUN_ID_HEADER = "gw-aig-run-id";
const NEW_LINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;

export class ResumableRuns {
  readonly #runs = new Map<string, Run>();
  readonly #places = new SharedPlaces(MAX_RUNS);
  readonly #keepMs: number;

  constructor(keepMs: number = KEEP_MS) {
    this.#keepMs = keepMs;
  }

  /** Runs a call whose stream can be read again. `begin` gets the call with another response. */
  async run(planned: PlannedCall, begin: (call: PlannedCall) => void | Promise<void>): Promise<void> {
    const { response } = planned;
    const place = this.#places.shareOf(holderOf(planned.caller, planned.gateway));
    if (!place.take()) throw overloaded();
    const source = new LocalResponse();
    const leave = () => source.destroy();
    // `#relay` sees the failure, unless the call is refused before.
    source.head.catch(() => undefined);
    response.once("close", leave);
    try {
      await begin({ ...planned, response: source });
      void this.#relay(planned, source, place, () => response.off("close", leave));
    } catch (error) {
      place.release();
      source.destroy();
      throw error;
    }
  }

  /** Answers a request below `run/`. */
  async serve(arrival: Arrival, path: string): Promise<void> {
    const { request, response, context } = arrival;
    const [id = "", action, ...rest] = path.split("/");
    const run = this.#runs.get(id);
    if (run === undefined || run.owner !== ownerOf(arrival) || rest.length > 0) throw expired();
    if (request.method === "DELETE" && action === undefined) {
      run.abort();
      this.#forget(run);
      response.writeHead(204);
      response.end();
      return;
    }
    if (action !== "resume") throw expired();
    if (request.method !== "GET") {
      throw new SignalboxError("method_not_allowed", { headers: { allow: "GET" } });
    }
    const from = new URLSearchParams(context.query).get("from") ?? "0";
    if (!/^\d{1,9}$/.test(from)) throw malformed("from must be a number of events");
    response.writeHead(200, [
      "content-type",
      "text/event-stream; charset=utf-8",
      "cache-control",
      "no-cache",
      RUN_ID_HEADER,
      id,
    ]);
    response.flushHeaders();
    await run.follow(response, Number(from));
  }

  /** Breaks off all that run. */
  close(): void {
    for (const run of this.#runs.values()) {
      run.abort();
      this.#forget(run);
    }
  }

  async #relay(planned: PlannedCall, source: LocalResponse, place: Share, stay: () => void): Promise<void> {
    const { response } = planned;
    let run: Run | null = null;
    try {
      const { status, headers, body } = await source.head;
      const list: string[] = headers.flat();
      if (status === 200 && isEventStream(headers)) {
        run = this.#begin(planned, source, place);
        stay();
        list.push(RUN_ID_HEADER, run.id);
      }
      if (!response.destroyed) response.writeHead(status, list);
      if (run === null) {
        await pass(body, response);
        return;
      }
      const own = run;
      if (!response.destroyed) response.flushHeaders();
      void own.follow(response, 0);
      await own.fill(body);
      setTimeout(() => this.#forget(own), this.#keepMs).unref();
    } catch {
      // The call was broken off before its head or, without a run, in the middle of its answer.
      if (run !== null) {
        run.abort();
        this.#forget(run);
      }
      response.destroy();
    } finally {
      if (run === null) place.release();
    }
  }

  #begin(planned: PlannedCall, source: LocalResponse, place: Share): Run {
    const run = new Run(ownerOf(planned), source, planned.memory, place);
    this.#runs.set(run.id, run);
    return run;
  }

  #forget(run: Run): void {
    if (this.#runs.delete(run.id)) run.release();
  }
}

class Run {
  /** Not the id of the row, which readers of the log know. */
  readonly id = randomBytes(16).toString("hex");
  readonly owner: string;
  readonly #source: LocalResponse;
  readonly #memory: MemoryShare;
  readonly #place: Share;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  /** Of the share: the bytes, and what their pieces cost. */
  #heldBytes = 0;
  #state: "running" | "complete" | "broken" = "running";
  /** Connections that wait for more. */
  readonly #waiting = new Set<() => void>();

  constructor(owner: string, source: LocalResponse, memory: MemoryShare, place: Share) {
    this.owner = owner;
    this.#source = source;
    this.#memory = memory;
    this.#place = place;
  }

  /** Keeps all of the body; ends when it has ended. */
  async fill(body: ReadableStream<Uint8Array<ArrayBuffer>> | null): Promise<void> {
    try {
      if (body !== null) for await (const chunk of body) this.#keep(Buffer.from(chunk));
      this.#end("complete");
    } catch {
      this.#end("broken");
    }
  }

  #keep(chunk: Buffer): void {
    const heldBytes = chunk.length + PIECE_BYTES;
    if (this.#bytes + chunk.length > MAX_BYTES || !this.#memory.take(heldBytes)) {
      throw new Error("the run does not fit into memory");
    }
    this.#bytes += chunk.length;
    this.#heldBytes += heldBytes;
    this.#chunks.push(chunk);
    this.#wake();
  }

  /** Writes what follows the first `events` events, as it arrives, until the run ends or the connection closes. */
  async follow(response: HttpResponse, events: number): Promise<void> {
    const skip = new EventSkip(events);
    const waiter = new Waiter(response);
    for (let i = 0; !response.destroyed;) {
      const chunk = this.#chunks[i];
      if (chunk !== undefined) {
        i += 1;
        const rest = skip.behind(chunk);
        if (rest.length > 0 && !response.write(rest)) await waiter.drained();
      } else if (this.#state === "running") {
        this.#waiting.add(waiter.wake);
        await waiter.woken();
        this.#waiting.delete(waiter.wake);
      } else if (this.#state === "complete") {
        response.end();
        return;
      } else response.destroy();
    }
  }

  /** Ends the call. */
  abort(): void {
    if (this.#state !== "running") return;
    this.#end("broken");
    this.#source.destroy();
  }

  /** Called once. A connection that has not read everything by now is closed. */
  release(): void {
    this.#state = "broken";
    this.#chunks.length = 0;
    this.#memory.release(this.#heldBytes);
    this.#place.release();
    this.#wake();
  }

  #end(state: "complete" | "broken"): void {
    if (this.#state !== "running") return;
    this.#state = state;
    if (state === "broken") this.#source.destroy();
    this.#wake();
  }

  #wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }
}

/**
 * One wait after the other of a connection; its end ends each of them. One listener for all: a promise of the end would keep every wait that was raced with it
 * until the connection closes.
 */
class Waiter {
  readonly #response: HttpResponse;
  #resolve: () => void = () => undefined;

  constructor(response: HttpResponse) {
    this.#response = response;
    response.once("close", this.wake);
  }

  readonly wake = (): void => this.#resolve();

  woken(): Promise<void> {
    return new Promise((resolve) => (this.#resolve = resolve));
  }

  drained(): Promise<void> {
    this.#response.once("drain", this.wake);
    return this.woken();
  }
}

/** Leaves out the first events of a stream. An event ends with an empty line. */
export class EventSkip {
  #left: number;
  #isAfterLine = false;

  constructor(events: number) {
    this.#left = events;
  }

  /** The part of the chunk that is behind them. */
  behind(chunk: Buffer): Buffer {
    let i = 0;
    for (; this.#left > 0 && i < chunk.length; i++) {
      const byte = chunk[i];
      if (byte === CARRIAGE_RETURN) continue;
      if (byte === NEW_LINE && this.#isAfterLine) this.#left -= 1;
      this.#isAfterLine = byte === NEW_LINE && !this.#isAfterLine;
    }
    return i === 0 ? chunk : chunk.subarray(i);
  }
}

function ownerOf({ gateway, caller }: Arrival): string {
  return `${gateway.accountId}/${gateway.id}/${caller.tokenId ?? ""}`;
}

function isEventStream(headers: readonly (readonly [name: string, value: string])[]): boolean {
  return headers.some(([name, value]) => /^content-type$/i.test(name) && /^text\/event-stream/i.test(value));
}

function expired(): SignalboxError {
  return new SignalboxError("not_found", { message: "There is no such run, or no longer" });
}

async function pass(
  body: ReadableStream<Uint8Array<ArrayBuffer>> | null,
  response: HttpResponse,
): Promise<void> {
  const waiter = new Waiter(response);
  if (body !== null) {
    for await (const chunk of body) {
      if (response.destroyed) return;
      if (!response.write(chunk)) await waiter.drained();
    }
  }
  response.end();
}
