/** Turns a connected socket into a `Link`: runs one side of the handshake within its time limit. */
import type { Socket } from "node:net";
import { FRAME_KINDS, type Frame, type FrameKind, FrameWriter, takeFrame } from "./frame.ts";
import {
  DiallerHandshake,
  HandshakeError,
  ListenerHandshake,
  MAX_HELLO_BYTES,
  type NodeHello,
} from "./handshake.ts";
import type { LinkFailure } from "./link-failure.ts";
import { Link, type LinkHandler, type LinkPeer } from "./link.ts";

export interface EstablishOptions {
  readonly key: Buffer;
  readonly self: NodeHello;
  readonly handler: LinkHandler;
  /** The handshake succeeded. A returned failure closes the link before any frame is read. */
  readonly onLink: (link: Link) => LinkFailure | null;
  /** The handshake failed, or the link ended. Called once. */
  readonly onEnd: (failure: LinkFailure, link: Link | null) => void;
}

const HANDSHAKE_MS = 5000;
const NOTHING = Buffer.alloc(0);

export function establish(socket: Socket, side: "dialler" | "listener", options: EstablishOptions): void {
  new Establishing(socket, side, options).begin();
}

class Establishing {
  readonly #socket: Socket;
  readonly #side: "dialler" | "listener";
  readonly #options: EstablishOptions;
  readonly #writer: FrameWriter;
  readonly #dialler: DiallerHandshake;
  readonly #listener: ListenerHandshake;
  readonly #timer: NodeJS.Timeout;
  /** Less than one frame of the handshake, and what arrived with it. */
  #unread: Buffer = NOTHING;
  #link: Link | null = null;
  #isOver = false;

  constructor(socket: Socket, side: "dialler" | "listener", options: EstablishOptions) {
    this.#socket = socket;
    this.#side = side;
    this.#options = options;
    this.#writer = new FrameWriter(socket);
    this.#dialler = new DiallerHandshake(options.key, options.self);
    this.#listener = new ListenerHandshake(options.key, options.self);
    this.#timer = setTimeout(() => this.#fail("no handshake in time"), HANDSHAKE_MS).unref();
  }

  begin(): void {
    const socket = this.#socket;
    socket.on("error", (error) => this.#fail(error.message));
    socket.on("close", () => this.#fail("the connection was closed"));
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    if (this.#side === "dialler") this.#send(FRAME_KINDS.hello, this.#dialler.hello);
  }

  #receive(chunk: Buffer): void {
    if (this.#link !== null) {
      this.#link.receive(chunk);
      return;
    }
    this.#unread = Buffer.concat([this.#unread, chunk]);
    try {
      this.#readHandshake();
    } catch (error) {
      // Also a frame that is too long: a stranger, or a wrong port.
      const reason = error instanceof Error ? error.message : String(error);
      if (error instanceof HandshakeError) this.#send(FRAME_KINDS.refusal, Buffer.from(reason));
      this.#fail(reason);
    }
  }

  #readHandshake(): void {
    while (this.#link === null && !this.#isOver) {
      const taken = takeFrame(this.#unread, MAX_HELLO_BYTES);
      if (taken === null) return;
      this.#unread = taken.rest;
      this.#accept(taken.frame);
    }
    // The side that has sent or checked the last proof is linked: first calls may arrive together with the proof.
    const rest = this.#unread;
    this.#unread = NOTHING;
    if (rest.length > 0) this.#link?.receive(rest);
  }

  #accept({ kind, payload }: Frame): void {
    if (kind === FRAME_KINDS.refusal) {
      throw new HandshakeError(`the other node refused the link: ${printable(payload)}`);
    }
    if (kind !== FRAME_KINDS.hello && kind !== FRAME_KINDS.proof) throw new HandshakeError("not a hello");
    const isHello = kind === FRAME_KINDS.hello;
    if (this.#side === "listener") {
      if (isHello) {
        this.#send(FRAME_KINDS.hello, this.#listener.answer(payload));
        return;
      }
      const { peer, proof } = this.#listener.finish(payload);
      if (proof !== null) this.#send(FRAME_KINDS.proof, proof);
      this.#establish(peer);
    } else if (isHello) {
      const { peer, proof } = this.#dialler.answer(payload);
      this.#send(FRAME_KINDS.proof, proof);
      if (peer !== null) this.#establish(peer);
    } else this.#establish(this.#dialler.finish(payload));
  }

  #establish(peer: LinkPeer): void {
    clearTimeout(this.#timer);
    this.#writer.close();
    const { handler, onLink } = this.#options;
    const link = new Link(this.#socket, peer, this.#side, handler, (closed, failure) =>
      this.#end(failure, closed),
    );
    this.#link = link;
    const refusal = onLink(link);
    if (refusal !== null) link.close(refusal);
  }

  #send(kind: FrameKind, payload: Buffer): void {
    this.#writer.write(kind, 0, payload);
    this.#writer.flush();
  }

  #fail(message: string): void {
    const failure: LinkFailure = { code: "unreachable", message };
    if (this.#link === null) this.#end(failure, null);
    else this.#link.close(failure);
  }

  #end(failure: LinkFailure, link: Link | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    // `end` first: a refusal that was just written reaches the other side.
    this.#socket.end(() => this.#socket.destroy());
    this.#options.onEnd(failure, link);
  }
}

/** The text of a stranger, for the log. */
function printable(payload: Buffer): string {
  return payload.toString("latin1", 0, 200).replaceAll(/[^\x20-\x7e]/g, "?");
}
