/**
 * A session of this node with the owner of an instance: the channel for the connections of all its sockets here.
 *
 *   opening ─ welcome → open ─ the stream breaks → broken ─ continued → open
 *      └ refused                └──────── moved, or lost (the owner is dead or has forgotten the session) ────────► over
 *
 * Invariant: `onLost` or `onMoved` is called at most once, and nothing is delivered afterwards.
 */
import { randomUUID } from "node:crypto";
import type { NodeNetwork } from "../../../contracts/node-network.ts";
import { LinkError, type LinkFailure, type LinkStream } from "../../../engines/node-link/index.ts";
import type { InstanceRef } from "../../instance/instance-ref.ts";
import { ABANDONED, decodeWelcome, encodeHello, SOCKET_STREAMS, toOpenError, type Welcome } from "./hello.ts";
import { ItemChannel, readWelcomed } from "./item-channel.ts";
import { decodeCount, encodeItem, type Item, ITEM_KINDS } from "./socket-items.ts";

export interface EdgeSessionEvents {
  onItem(item: Item): void;
  /** The instance is at another node (null: unknown). The owner had received so many items. */
  onMoved(node: string | null, received: number): void;
  /** The owner is dead or has forgotten the session. At most so many items were sent. */
  onLost(sent: number): void;
  /** The stream broke; the session is not lost yet. */
  onBroken(): void;
}

export interface EdgeSessionParts {
  readonly network: NodeNetwork;
  readonly node: string;
  readonly ref: InstanceRef;
  readonly events: EdgeSessionEvents;
}

const NO_LINK: LinkFailure = { code: "unreachable", message: "there is no link to the node" };

export class EdgeSession {
  readonly node: string;
  readonly #parts: EdgeSessionParts;
  readonly #id = randomUUID();
  readonly #channel = new ItemChannel((item) => this.#onItem(item));
  #stream: LinkStream | null = null;
  #phase: "opening" | "open" | "broken" | "over" = "opening";

  constructor(parts: EdgeSessionParts) {
    this.#parts = parts;
    this.node = parts.node;
  }

  get isBroken(): boolean {
    return this.#phase === "broken";
  }

  get isOver(): boolean {
    return this.#phase === "over";
  }

  /** Rejects with `InstanceElsewhereError`, with `NotSentError` if nothing but the hello was sent, or with the reason of a refusal. */
  open(mayCreate: boolean): Promise<Welcome> {
    return new Promise((resolve, reject) => {
      this.#start(false, mayCreate, {
        onWelcome: (welcome) => {
          this.#phase = "open";
          resolve(welcome);
        },
        onFailure: (failure) => {
          this.#phase = "over";
          reject(toOpenError(failure));
        },
      });
    });
  }

  /** Tries to go on after a break. Without a link nothing happens. */
  continue(): void {
    if (this.#phase !== "broken" || this.#stream !== null) return;
    if (this.#parts.network.linkTo(this.node) === null) return;
    this.#start(true, false, {
      onWelcome: () => (this.#phase = "open"),
      onFailure: (failure) => {
        if (failure.code === "unknown_session") this.lose();
      },
    });
  }

  /** Returns the number of the item. */
  send(kind: number, ...pieces: readonly Buffer[]): number {
    return this.#channel.send({ encode: () => encodeItem(kind, ...pieces) });
  }

  /** No connection is left. What was sent before arrives. */
  end(): void {
    if (this.#phase === "over") return;
    this.#phase = "over";
    this.#channel.close();
  }

  /** The owner is dead, or runs the instance no more. */
  lose(): void {
    if (this.#phase === "over") return;
    this.#phase = "over";
    const { sent } = this.#channel;
    this.#stream?.reset(ABANDONED);
    this.#channel.close();
    this.#parts.events.onLost(sent);
  }

  #start(
    isContinued: boolean,
    mayCreate: boolean,
    { onWelcome, onFailure }: { onWelcome(welcome: Welcome): void; onFailure(failure: LinkFailure): void },
  ): void {
    const { network, ref } = this.#parts;
    const link = network.linkTo(this.node);
    const received = this.#channel.received;
    let stream: LinkStream;
    try {
      if (link === null) throw new LinkError(NO_LINK);
      const hello = encodeHello({ session: this.#id, ref, isContinued, received, mayCreate });
      stream = link.openStream(SOCKET_STREAMS, hello);
    } catch (error) {
      onFailure(error instanceof LinkError ? error.failure : NO_LINK);
      return;
    }
    this.#stream = stream;
    readWelcomed(this.#channel, stream, {
      onWelcome: (payload) => {
        if (this.#phase === "over") return;
        const welcome = decodeWelcome(payload);
        this.#channel.attach(stream, welcome.received);
        onWelcome(welcome);
      },
      onRefused: (failure) => {
        if (this.#stream === stream) this.#stream = null;
        if (this.#phase !== "over") onFailure(failure ?? NO_LINK);
      },
      onEnd: (failure) => {
        if (this.#stream === stream) this.#stream = null;
        this.#onStreamEnd(stream, failure);
      },
    });
  }

  #onItem(item: Item): void {
    if (item.kind !== ITEM_KINDS.moved) {
      this.#parts.events.onItem(item);
      return;
    }
    const received = decodeCount(item.payload.subarray(0, 8));
    const node = item.payload.toString("utf8", 8);
    this.end();
    this.#parts.events.onMoved(node === "" ? null : node, received);
  }

  #onStreamEnd(stream: LinkStream, failure: LinkFailure | null): void {
    if (this.#phase === "over" || !this.#channel.detach(stream)) return;
    // The owner ends no stream in order, unless it has forgotten the session. After garbage in either direction nothing can be trusted.
    if (failure === null || failure.code === "defect") {
      this.lose();
      return;
    }
    this.#phase = "broken";
    this.#parts.events.onBroken();
  }
}
