/** The nodes of a cluster and the links between them, as an area uses them. */
import type { Link, LinkStream } from "../engines/node-link/index.ts";

export interface NodeNetwork {
  /** The incarnation of this process: another one after it was declared dead and has joined again. */
  readonly self: string;
  /** The living nodes, this one included, as of the last heartbeat. */
  readonly members: readonly NetworkMember[];
  /** Null if there is no link to the node at the moment. */
  linkTo(node: string): Link | null;
  /** Rejects with `LinkError`: `unreachable` and `overloaded` mean that nothing was sent, `broken` that the outcome is unknown. */
  call(node: string, name: string, payload: Uint8Array, signal?: AbortSignal): Promise<Buffer>;
  /** Answers calls of other nodes. Registered before the areas start. */
  serve(name: string, service: (payload: Buffer, from: string) => Uint8Array | Promise<Uint8Array>): void;
  serveStreams(name: string, service: (payload: Buffer, stream: LinkStream, from: string) => void): void;
  /** From now on this node does not know the services whose names begin so: other nodes send their work elsewhere. */
  withdraw(prefix: string): void;
  /** A node joined, left, died, began to drain, or its link opened or closed. Returns a function that removes the listener. */
  onChange(listener: () => void): () => void;
}

export interface NetworkMember {
  readonly inc: string;
  readonly name: string;
  readonly state: "up" | "draining";
}
