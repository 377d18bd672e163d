/**
 * A request to another node whose answer may be a stream: one stream of the link. This is the caller's side; `serve-exchanges.ts` is the other.
 *
 *   caller → owner: a packet (JSON, length of the body; bytes) that opens the stream, the body, end
 *   owner → caller: the head with its length before it (JSON, or a failure), the body, end
 *
 * Invariants:
 * 1. The promise settles once: with the head of the answer, or with the error that the other node carried over, a `LinkError`, or the reason of the
 *    signal.
 * 2. The body is read at the caller's pace. Destroying it, or aborting the signal before the head has arrived, resets the stream, which cancels the
 *    work at the other node.
 * 3. A body that breaks off is destroyed with an error: it never looks complete.
 */
import { Readable } from "node:stream";
import type { NodeNetwork } from "../../contracts/node-network.ts";
import {
  encodePacket,
  LinkError,
  type LinkFailure,
  type LinkStream,
  type Packet,
  PacketError,
  StreamHeadReader,
} from "../../engines/node-link/index.ts";
import type { NodeInc } from "../../core/node-inc.ts";
import { fromCarried, throwCarried } from "./carried-error.ts";
import { outcomeUnknown } from "./explain-failure.ts";

export interface Exchange {
  /** The service of the other node. */
  readonly name: string;
  /** As JSON. */
  readonly head: unknown;
  /** Beside the head. */
  readonly attachment?: Uint8Array | undefined;
  readonly body: Uint8Array | null;
  readonly signal?: AbortSignal | undefined;
}

export interface ExchangeAnswer {
  /** From JSON. */
  readonly head: unknown;
  readonly body: Readable | null;
}

/** Kinds of the packet at the beginning of an answer. */
export const WITH_BODY = 1;
export const WITHOUT_BODY = 2;
/** The source of a body failed; the details are its error. */
export const BODY_FAILED = "body_failed";
/** The head of an answer is larger only if an agent sets more than this in headers, or management shows more in one page. */
export const MAX_HEAD_BYTES = 64 * 1024 * 1024;

export function openExchange(
  network: NodeNetwork,
  node: NodeInc,
  exchange: Exchange,
): Promise<ExchangeAnswer> {
  const { name, head, attachment, body, signal } = exchange;
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const link = network.linkTo(node);
    if (link === null) throw new LinkError({ code: "unreachable", message: `no link to node ${node}` });
    const packet = encodePacket(0, [JSON.stringify(head), String(body?.length ?? 0)], attachment);
    const answer = new Answer(link.openStream(name, packet), resolve, reject, signal);
    answer.start(body);
  });
}

class Answer {
  readonly #stream: LinkStream;
  readonly #resolve: (answer: ExchangeAnswer) => void;
  readonly #reject: (error: unknown) => void;
  readonly #signal: AbortSignal | undefined;
  readonly #reader = new StreamHeadReader(MAX_HEAD_BYTES);
  #body: StreamBody | null = null;

  constructor(
    stream: LinkStream,
    resolve: (answer: ExchangeAnswer) => void,
    reject: (error: unknown) => void,
    signal: AbortSignal | undefined,
  ) {
    this.#stream = stream;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#signal = signal;
  }

  start(body: Uint8Array | null): void {
    this.#signal?.addEventListener("abort", this.#abort, { once: true });
    if (body !== null) this.#stream.write(body);
    this.#stream.end();
    this.#stream.start({
      onData: (bytes) => this.#onData(bytes),
      onEnd: () => {
        if (this.#body === null)
          this.#fail(new LinkError({ code: "broken", message: "there was no answer" }));
        else this.#body.push(null);
      },
      onFailure: (failure) => {
        if (this.#body === null) this.#fail(new LinkError(failure));
        else this.#body.destroy(toBodyError(failure));
      },
    });
  }

  #onData(bytes: Buffer): void {
    if (this.#body !== null) {
      this.#body.receive(bytes);
      return;
    }
    try {
      const read = this.#reader.read(bytes);
      if (read === null) return;
      this.#onHead(read.packet, read.rest);
    } catch (error) {
      this.#stream.reset();
      this.#fail(error);
    }
  }

  #onHead(packet: Packet, rest: Buffer): void {
    throwCarried(packet);
    if (packet.kind !== WITH_BODY && packet.kind !== WITHOUT_BODY) throw new PacketError("not an answer");
    this.#signal?.removeEventListener("abort", this.#abort);
    this.#body = new StreamBody(this.#stream);
    if (packet.kind === WITHOUT_BODY) this.#body.resume();
    else if (rest.length > 0) this.#body.receive(rest);
    this.#resolve({
      head: JSON.parse(packet.texts[0] ?? "null"),
      body: packet.kind === WITH_BODY ? this.#body : null,
    });
  }

  readonly #abort = (): void => {
    this.#stream.reset();
    this.#fail(this.#signal?.reason);
  };

  #fail(error: unknown): void {
    this.#signal?.removeEventListener("abort", this.#abort);
    this.#reject(error);
  }
}

function toBodyError(failure: LinkFailure): Error {
  if (failure.code === BODY_FAILED) return fromCarried(failure.details ?? {});
  return outcomeUnknown(new LinkError(failure));
}

/** The bytes of a stream after its head. */
class StreamBody extends Readable {
  readonly #stream: LinkStream;

  constructor(stream: LinkStream) {
    super();
    this.#stream = stream;
    // The link may break before the caller reads. The caller then finds the stream destroyed, with the error.
    this.on("error", () => undefined);
  }

  receive(bytes: Buffer): void {
    if (!this.push(bytes)) this.#stream.pause();
  }

  override _read(): void {
    this.#stream.resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#stream.reset();
    callback(error);
  }
}
