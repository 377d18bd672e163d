/**
 * The calls of one WebSocket at the universal endpoint (`/v1/{account}/{gateway}`), as the hosted original's interface for sockets without a realtime session has them.
 *
 *   → {"type":"universal.create","request":{"eventId":…,"provider":…,"endpoint":…,"headers":…,"query":…}}
 *   ← {"type":"universal.created","metadata":{…},"response":…}                              a whole answer, also that of an error
 *   ← universal.created without a response, universal.stream for each event, universal.done  a stream
 *   ← {"type":"error","metadata":{"eventId":…},"error":{"code":…,"message":…}}               a message that is no call
 *
 * Invariants:
 * 1. A message runs as a POST of the same caller to the universal endpoint: its token is checked, its limits count, and it has a row.
 * 2. A socket that closes ends its calls, except resumable streams.
 * 3. Messages and answers are in memory within the share of the caller.
 * 4. At most `MAX_CALLS` run at a time. Then the socket is not read, and messages of its last read wait. What a client does not read is not read from
 *    the provider.
 * 5. A socket that is not read is not checked for its pongs.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { WebSocket } from "ws";
import type { OwnServer } from "../../contracts/own-server.ts";
import { type Fields, isFields } from "../../core/fields.ts";
import { overloaded } from "../../core/overload.ts";
import { HeldMemory, type MemoryShare } from "../../engines/http-server/index.ts";

export interface UniversalCallsParts {
  readonly client: WebSocket;
  readonly server: Pick<OwnServer, "call">;
  /** Path of the endpoint. */
  readonly target: string;
  /** Credentials and options of the handshake. */
  readonly headers: Readonly<Record<string, string>>;
  readonly maxMessageBytes: number;
  /** Of the caller, for messages and answers while they are in memory. */
  readonly memory: MemoryShare;
}

const MAX_CALLS = 32;
const EVENT_ID = /^[\x20-\x7e]{1,512}$/;
const EVENT_END = /\r?\n\r?\n/;
/** The longest beginning of `EVENT_END`. */
const MAX_BEGUN_END = 3;
/** Of the list and the string, for each chunk of an event that is not complete: a provider may send single bytes. */
const CHUNK_BYTES = 64;
const LAST_EVENT = "[DONE]";

export class UniversalCalls {
  readonly #parts: UniversalCallsParts;
  readonly #abort = new AbortController();
  #running = 0;
  readonly #waiting: Buffer[] = [];
  /** False from a ping until its pong. */
  #isAlive = true;
  /** `performance.now()` of the last message in either direction. */
  lastMessageAt = performance.now();

  constructor(parts: UniversalCallsParts) {
    this.#parts = parts;
    const { client } = parts;
    client.on("message", (data: Buffer) => this.#receive(data));
    client.on("pong", () => (this.#isAlive = true));
    client.on("close", () => {
      this.#waiting.length = 0;
      this.#abort.abort();
    });
  }

  /** Terminates a connection that has not answered the last ping, otherwise pings it. */
  checkAlive(): void {
    const { client } = this.#parts;
    if (client.isPaused) return;
    if (this.#isAlive) {
      this.#isAlive = false;
      client.ping();
    } else client.terminate();
  }

  #receive(data: Buffer): void {
    this.lastMessageAt = performance.now();
    if (this.#running < MAX_CALLS) void this.#answer(data);
    else this.#waiting.push(data);
    if (this.#running >= MAX_CALLS) this.#parts.client.pause();
  }

  async #answer(data: Buffer): Promise<void> {
    this.#running += 1;
    const held = new HeldMemory();
    let eventId: string | null = null;
    try {
      // The message, and the request that is made of it.
      this.#hold(held, 2 * data.length);
      const { eventId: named, ...step } = readRequest(data);
      eventId = named;
      await this.#call(eventId, step, held);
    } catch (error) {
      const known =
        error instanceof SignalboxError ? error : new SignalboxError("internal", { cause: error });
      await this.#send({
        type: "error",
        metadata: { eventId },
        error: { code: known.code, message: known.message },
      });
    } finally {
      held.release();
      this.#running -= 1;
      this.#proceed();
    }
  }

  #proceed(): void {
    const { client } = this.#parts;
    const next = this.#waiting.shift();
    if (next !== undefined) void this.#answer(next);
    else if (client.isPaused) {
      // The pong may be among what was not read.
      this.#isAlive = true;
      client.resume();
    }
  }

  #hold(held: HeldMemory, bytes: number): void {
    if (!held.hold(this.#parts.memory, bytes)) throw overloaded();
  }

  async #call(eventId: string | null, step: Fields, held: HeldMemory): Promise<void> {
    const { server, target, headers, maxMessageBytes } = this.#parts;
    const response = await server.call({
      method: "POST",
      target,
      headers: {
        ...headers,
        "content-type": "application/json",
        ...(eventId === null ? {} : { "gw-aig-event-id": eventId }),
      },
      body: Buffer.from(JSON.stringify([step])),
      authorization: null,
      signal: this.#abort.signal,
    });
    const metadata = metadataOf(response, eventId);
    if (metadata.contentType?.startsWith("text/event-stream") === true && response.body !== null) {
      await this.#send({ type: "universal.created", metadata });
      for await (const event of this.#eventsOf(response.body as ReadableStream<Uint8Array>))
        await this.#send({ type: "universal.stream", metadata: { eventId }, response: event });
      await this.#send({ type: "universal.done", metadata });
      return;
    }
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      size += chunk.length;
      if (size > maxMessageBytes) throw tooLarge();
      this.#hold(held, 2 * chunk.length);
      chunks.push(chunk);
    }
    const text = Buffer.concat(chunks).toString("utf8");
    await this.#send({ type: "universal.created", metadata, response: parsed(text) });
  }

  /** The data of each event, as JSON if it is JSON. */
  async *#eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator {
    const decoder = new TextDecoder();
    const partial = new PartialEvent();
    let held = new HeldMemory();
    try {
      for await (const chunk of body) {
        const events = partial.add(decoder.decode(chunk, { stream: true }));
        if (partial.length > this.#parts.maxMessageBytes) throw tooLarge();
        for (const event of events) {
          const data = dataOf(event);
          if (data !== null) yield parsed(data);
        }
        if (events.length > 0) {
          held.release();
          held = new HeldMemory();
        }
        if (partial.length > 0) this.#hold(held, 2 * Math.min(chunk.length, partial.length) + CHUNK_BYTES);
      }
    } finally {
      held.release();
    }
  }

  /** Resolves when the message has left, or the socket has closed. */
  #send(message: object): Promise<void> {
    this.lastMessageAt = performance.now();
    return new Promise((resolve) => this.#parts.client.send(JSON.stringify(message), () => resolve()));
  }
}

/** A step of the universal endpoint, with the id of the call. */
function readRequest(data: Buffer): { readonly eventId: string | null; readonly [member: string]: unknown } {
  const message = parsed(data.toString("utf8"));
  if (!isFields(message) || message["type"] !== "universal.create" || !isFields(message["request"])) {
    throw invalid('a message must be {"type":"universal.create","request":{…}}');
  }
  const { eventId = null, ...step } = message["request"];
  if (eventId !== null && (typeof eventId !== "string" || !EVENT_ID.test(eventId))) {
    throw invalid("eventId must be 1 to 512 printable characters");
  }
  return { ...step, eventId };
}

function invalid(message: string): SignalboxError {
  return new SignalboxError("gateway_malformed_request", { message });
}

function tooLarge(): SignalboxError {
  return new SignalboxError("gateway_body_too_large", { message: "The answer is too large for a message" });
}

function metadataOf({ headers, status }: Response, eventId: string | null) {
  return {
    cacheStatus: headers.get("gw-aig-cache-status"),
    eventId,
    logId: headers.get("gw-aig-log-id"),
    requestId: headers.get("gw-aig-request-id"),
    runId: headers.get("gw-aig-run-id"),
    step: headers.get("gw-aig-step"),
    contentType: headers.get("content-type"),
    status,
  };
}

/** The beginning of an event whose end has not arrived. Each chunk is searched once, with the characters before it that may begin the end. */
class PartialEvent {
  #pieces: string[] = [];
  #piecesLength = 0;
  #tail = "";

  get length(): number {
    return this.#piecesLength + this.#tail.length;
  }

  /** Returns the events that end in the text. */
  add(text: string): readonly string[] {
    const [first = "", ...others] = (this.#tail + text).split(EVENT_END);
    const last = others.pop();
    if (last === undefined) {
      this.#keep(first);
      return [];
    }
    const whole = this.#pieces.join("") + first;
    this.#pieces = [];
    this.#piecesLength = 0;
    this.#keep(last);
    return [whole, ...others];
  }

  #keep(text: string): void {
    const piece = text.slice(0, -MAX_BEGUN_END);
    this.#pieces.push(piece);
    this.#piecesLength += piece.length;
    this.#tail = text.slice(-MAX_BEGUN_END);
  }
}

/** Null for a comment, and for the mark of the end. */
function dataOf(event: string): string | null {
  const lines = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
  const data = lines.map((line) => line.slice("data:".length).replace(/^ /, "")).join("\n");
  return lines.length === 0 || data === LAST_EVENT ? null : data;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
