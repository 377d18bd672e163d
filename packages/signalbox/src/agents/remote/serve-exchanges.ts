/**
 * The owner's side of `exchange.ts`: collects the request, runs it, and sends the answer at the pace of the other node.
 *
 * Invariants:
 * 1. The bodies of all requests that other nodes have sent use at most `maxBytes`; a request beyond that is refused with `overloaded`, and not run.
 * 2. `signal` of a request aborts when its caller has given up or its link broke; the body of its answer is then cancelled.
 * 3. `release` of an answer is called once, when its body has been sent or given up.
 */
import { Readable } from "node:stream";
import type { NodeNetwork } from "../../contracts/node-network.ts";
import { overloaded } from "../../core/overload.ts";
import { Limit } from "../../core/limit.ts";
import {
  decodePacket,
  encodePacket,
  encodeStreamHead,
  type LinkStream,
  type Packet,
  PacketError,
} from "../../engines/node-link/index.ts";
import { encodeFailure, toCarried } from "./carried-error.ts";
import { BODY_FAILED, MAX_HEAD_BYTES, WITH_BODY, WITHOUT_BODY } from "./exchange.ts";

export interface ServedExchange {
  readonly head: unknown;
  readonly attachment: Buffer;
  readonly body: Buffer;
  readonly signal: AbortSignal;
}

export interface ExchangeReply {
  /** As JSON. */
  readonly head: unknown;
  readonly body: ReadableStream<unknown> | Readable | null;
  release?(): void;
}

type Run = (exchange: ServedExchange) => Promise<ExchangeReply>;

export class ExchangeServer {
  readonly #network: NodeNetwork;
  readonly #bodies: Limit;

  constructor(network: NodeNetwork, maxBytes: number) {
    this.#network = network;
    this.#bodies = new Limit(maxBytes);
  }

  serve(name: string, run: Run): void {
    this.#network.serveStreams(name, (payload, stream) => {
      const packet = decodePacket(payload);
      const length = Number(packet.texts[1]);
      if (!Number.isSafeInteger(length) || length < 0) throw new PacketError("not a request");
      if (this.#bodies.take(length))
        new Served(stream, packet, length, run, () => this.#bodies.release(length)).start();
      else refuse(stream);
    });
  }
}

function refuse(stream: LinkStream): void {
  stream.start({ onData: () => undefined, onEnd: () => undefined, onFailure: () => undefined });
  stream.write(encodeStreamHead(encodeFailure(overloaded())));
  stream.end();
}

class Served {
  readonly #stream: LinkStream;
  readonly #packet: Packet;
  readonly #length: number;
  readonly #run: Run;
  readonly #releaseBody: () => void;
  readonly #caller = new AbortController();
  #parts: Buffer[] = [];
  #received = 0;
  /** Ends the wait for credit. */
  #drained: (() => void) | null = null;
  #reader: ReadableStreamDefaultReader<unknown> | null = null;

  constructor(stream: LinkStream, packet: Packet, length: number, run: Run, releaseBody: () => void) {
    this.#stream = stream;
    this.#packet = packet;
    this.#length = length;
    this.#run = run;
    this.#releaseBody = releaseBody;
  }

  start(): void {
    let isStarted = false;
    this.#stream.start({
      onData: (bytes) => this.#collect(bytes),
      onEnd: () => {
        isStarted = true;
        void this.#serve();
      },
      onFailure: () => {
        if (!isStarted) this.#releaseBody();
        this.#giveUp();
      },
      onDrain: () => this.#resume(),
    });
  }

  #collect(bytes: Buffer): void {
    this.#received += bytes.length;
    // More than was announced is not kept; `#serve` refuses the request.
    if (this.#received <= this.#length) this.#parts.push(bytes);
  }

  #giveUp(): void {
    this.#caller.abort();
    this.#resume();
    // A body that cannot be cancelled has already ended or failed.
    this.#reader?.cancel().catch(() => undefined);
  }

  #resume(): void {
    this.#drained?.();
    this.#drained = null;
  }

  /** Never rejects. */
  async #serve(): Promise<void> {
    let reply: ExchangeReply | null = null;
    let head: string;
    try {
      if (this.#received !== this.#length)
        throw new PacketError("the body has another length than announced");
      const body = Buffer.concat(this.#parts, this.#length);
      this.#parts = [];
      reply = await this.#run({
        head: JSON.parse(this.#packet.texts[0] ?? "null"),
        attachment: this.#packet.bytes,
        body,
        signal: this.#caller.signal,
      });
      head = JSON.stringify(reply.head);
      if (head.length * 2 > MAX_HEAD_BYTES) throw overloaded("The answer is too large");
    } catch (error) {
      this.#stream.write(encodeStreamHead(encodeFailure(error)));
      this.#stream.end();
      if (reply !== null) discard(reply);
      return;
    } finally {
      // Not with the answer, which may have no end: open streams would use the memory for bodies up.
      this.#releaseBody();
    }
    const { body } = reply;
    this.#stream.write(encodeStreamHead(encodePacket(body === null ? WITHOUT_BODY : WITH_BODY, [head])));
    try {
      if (body !== null) await this.#send(body);
      this.#stream.end();
    } catch (error) {
      this.#stream.reset({ code: BODY_FAILED, message: "the body failed", details: toCarried(error) });
    } finally {
      reply.release?.();
    }
  }

  async #send(body: ReadableStream<unknown> | Readable): Promise<void> {
    const reader = (
      body instanceof Readable ? (Readable.toWeb(body) as ReadableStream<unknown>) : body
    ).getReader();
    this.#reader = reader;
    if (this.#caller.signal.aborted) await reader.cancel();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || this.#stream.isClosed) return;
      const bytes = value instanceof Uint8Array ? value : Buffer.from(String(value));
      if (!this.#stream.write(bytes) && !this.#stream.isClosed)
        await new Promise<void>((resolve) => {
          this.#drained = resolve;
        });
    }
  }
}

/** The answer cannot be sent. */
function discard({ body, release }: ExchangeReply): void {
  if (body instanceof Readable) body.destroy();
  // The error of a body that fails when it is cancelled has no receiver.
  else body?.cancel().catch(() => undefined);
  release?.();
}
