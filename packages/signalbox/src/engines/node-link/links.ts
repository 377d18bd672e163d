/**
 * One link to each other node. The node that started later dials: it knows the others from its first look at the members.
 *
 * Invariants:
 * 1. At most one link per peer. A second connection from a peer replaces the first: the peer has noticed a break that this side has not.
 * 2. A peer that is not a member is not heard: its link waits, unread, and is closed after `MEMBER_WAIT_MS`. Links of nodes that left are closed, and one
 *    that was a member before (`isGone`) is refused at once: it learns that the others have given it up.
 * 3. A broken link is dialled again with backoff until the peer leaves.
 * 4. A link is made by the side that dials. A peer whose list of members is old may dial an address that belongs to this node now; its connection
 *    does not replace the link.
 * 5. After `leave` there are no new links.
 */
import type { AddressInfo, Server, Socket } from "node:net";
import { fullJitterDelay } from "../../core/retry.ts";
import { establish, type EstablishOptions } from "./establish.ts";
import { type NodeHello, toLinkKey } from "./handshake.ts";
import { LinkError, type LinkFailure } from "./link-failure.ts";
import { Newcomers } from "./newcomers.ts";
import { createLinkServer, dialSocket, type LinkSecurity } from "./link-socket.ts";
import type { Link, LinkHandler } from "./link.ts";

export interface Peer {
  readonly node: string;
  readonly host: string;
  readonly port: number;
  /** True if this node dials. */
  readonly isDialled: boolean;
}

export interface LinksOptions {
  readonly self: NodeHello;
  readonly security: LinkSecurity;
  readonly handler: LinkHandler;
  readonly onUp?: (peer: string) => void;
  readonly onDown?: (peer: string, failure: LinkFailure) => void;
  /** True for a node that has been a member and never will be one again. Default: none is known. */
  readonly isGone?: (peer: string) => boolean;
  /** For tests: how long a peer may wait to become a member. */
  readonly memberWaitMs?: number;
  /** A connection was refused, or could not be made. */
  readonly onProblem?: (peer: string | null, failure: LinkFailure) => void;
}

/** A link that ends earlier counts as a failed attempt: the other side does not want it. */
const STABLE_MS = 2000;
const RETRY = { baseDelayMs: 50, maxDelayMs: 1000 };
/** A node that has just joined dials before the others have seen its row. They look twice a second. */
const MEMBER_WAIT_MS = 3000;

interface PeerState {
  peer: Peer;
  link: Link | null;
  socket: Socket | null;
  timer: NodeJS.Timeout | undefined;
  attempt: number;
  /** When the last link was made. */
  linkedAt: number;
}

interface EarlyLink {
  readonly link: Link;
  readonly timer: NodeJS.Timeout;
}

export class Links {
  readonly #options: LinksOptions;
  readonly #key: Buffer;
  readonly #peers = new Map<string, PeerState>();
  readonly #server: Server;
  readonly #newcomers = new Newcomers();
  /** Links of nodes that are not members yet. */
  readonly #early = new Map<string, EarlyLink>();
  /** Links that `onUp` was called for. */
  readonly #made = new Set<Link>();
  #isLeaving = false;
  #isClosed = false;

  private constructor(options: LinksOptions) {
    this.#options = options;
    this.#key = toLinkKey(options.security.secret);
    this.#server = createLinkServer(options.security, (socket) => this.#welcome(socket));
    this.#server.on("error", (error) =>
      options.onProblem?.(null, { code: "unreachable", message: error.message }),
    );
  }

  /** Listens for other nodes. Port 0 picks a free port. */
  static async listen(
    address: { readonly host: string; readonly port: number },
    options: LinksOptions,
  ): Promise<Links> {
    const links = new Links(options);
    await new Promise<void>((resolve, reject) => {
      links.#server.once("error", reject);
      // Exclusive: processes that share the addresses of the service do not share links.
      links.#server.listen({ ...address, exclusive: true }, () => {
        links.#server.removeListener("error", reject);
        resolve();
      });
    });
    return links;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** The peers that are linked at the moment. */
  get linked(): string[] {
    return [...this.#peers.values()].filter(({ link }) => link !== null).map(({ peer }) => peer.node);
  }

  /** Null if the peer is unknown, not linked at the moment, or stops. */
  to(node: string): Link | null {
    const link = this.#peers.get(node)?.link;
    return link == null || link.isPeerLeaving ? null : link;
  }

  /** Calls a method of a peer; `unreachable` if there is no link. */
  call(node: string, name: string, payload: Uint8Array, signal?: AbortSignal): Promise<Buffer> {
    const link = this.to(node);
    if (link !== null) return link.call(name, payload, signal);
    return Promise.reject(new LinkError({ code: "unreachable", message: `no link to node ${node}` }));
  }

  /** Dials new peers, and closes the links of those that left. */
  setPeers(peers: readonly Peer[]): void {
    if (this.#isClosed) return;
    const names = new Set(peers.map(({ node }) => node));
    for (const [node, state] of this.#peers) if (!names.has(node)) this.#forget(node, state);
    for (const peer of peers) {
      const known = this.#peers.get(peer.node);
      if (known !== undefined) {
        known.peer = peer;
        continue;
      }
      const state: PeerState = { peer, link: null, socket: null, timer: undefined, attempt: 0, linkedAt: 0 };
      this.#peers.set(peer.node, state);
      if (peer.isDialled) this.#dial(state);
      else this.#admitEarly(state);
    }
  }

  /**
   * Resolves when the peers have the answers of everything that they had begun here, and begin nothing more; at the latest when the signal aborts. This
   * node can still call them.
   */
  async leave(signal: AbortSignal): Promise<void> {
    this.#isLeaving = true;
    const left = [...this.#peers.values()].flatMap(({ link }) => (link === null ? [] : [link.leave()]));
    await Promise.race([Promise.all(left), aborted(signal)]);
  }

  close(): Promise<void> {
    this.#isClosed = true;
    for (const [node, state] of this.#peers) this.#forget(node, state);
    for (const { link } of this.#early.values()) link.close({ code: "broken", message: "the node stops" });
    this.#newcomers.closeAll();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #forget(node: string, state: PeerState): void {
    this.#peers.delete(node);
    clearTimeout(state.timer);
    state.socket?.destroy();
    state.link?.close({ code: "broken", message: "the node left the cluster" });
  }

  #dial(state: PeerState): void {
    const { peer } = state;
    const socket = dialSocket(peer, this.#options.security, () =>
      establish(socket, "dialler", {
        ...this.#common(),
        onLink: (link) => {
          state.socket = null;
          if (link.peer.node !== peer.node) {
            return {
              code: "unreachable",
              message: `node ${link.peer.node} answers at the address of ${peer.node}`,
            };
          }
          return this.#add(link, true);
        },
        onEnd: (failure, link) => this.#ended(state, failure, link),
      }),
    );
    state.socket = socket;
    let isConnected = false;
    socket.once("connect", () => (isConnected = true));
    // Errors before the connection; later ones belong to the handshake and the link.
    socket.once("error", (error) => {
      if (!isConnected) this.#ended(state, { code: "unreachable", message: error.message }, null);
    });
  }

  #ended(state: PeerState, failure: LinkFailure, link: Link | null): void {
    const { peer } = state;
    state.socket = null;
    const wasMade = link !== null && this.#made.has(link);
    if (wasMade) this.#remove(link, failure);
    else this.#options.onProblem?.(peer.node, failure);
    if (this.#isClosed || this.#peers.get(peer.node) !== state || !peer.isDialled) return;
    if (state.link !== null || state.timer !== undefined) return;
    const isStable = wasMade && performance.now() - state.linkedAt > STABLE_MS;
    state.attempt = isStable ? 1 : state.attempt + 1;
    state.timer = setTimeout(
      () => {
        state.timer = undefined;
        if (state.link === null && this.#peers.get(peer.node) === state) this.#dial(state);
      },
      fullJitterDelay(state.attempt, RETRY),
    ).unref();
  }

  #welcome(socket: Socket): void {
    if (this.#isClosed) {
      socket.on("error", () => undefined);
      socket.destroy();
      return;
    }
    this.#newcomers.add(socket);
    establish(socket, "listener", {
      ...this.#common(),
      onLink: (link) => {
        this.#newcomers.remove(socket);
        return this.#add(link, false);
      },
      onEnd: (failure, link) => {
        this.#newcomers.remove(socket);
        if (link === null) this.#options.onProblem?.(null, failure);
        else if (this.#made.has(link)) this.#remove(link, failure);
        else this.#refused(link, failure);
      },
    });
  }

  #common(): Pick<EstablishOptions, "key" | "self" | "handler"> {
    return { key: this.#key, self: this.#options.self, handler: this.#options.handler };
  }

  /** Returns why the link is refused; null if it is accepted. */
  #add(link: Link, isDialled: boolean): LinkFailure | null {
    if (this.#isLeaving) return { code: "unreachable", message: "the node stops" };
    const state = this.#peers.get(link.peer.node);
    if (state === undefined) return this.#holdEarly(link);
    if (state.peer.isDialled !== isDialled)
      return { code: "unreachable", message: "the other side makes the link" };
    const previous = state.link;
    state.link = link;
    state.linkedAt = performance.now();
    this.#made.add(link);
    previous?.close({ code: "broken", message: "the node connected again" });
    this.#options.onUp?.(link.peer.node);
    return null;
  }

  /** What the peer sends waits in the buffers of the kernel. */
  #holdEarly(link: Link): LinkFailure | null {
    const { node } = link.peer;
    if (this.#options.isGone?.(node) === true)
      return { code: "unreachable", message: "the node was declared dead" };
    this.#early.get(node)?.link.close({ code: "broken", message: "the node connected again" });
    link.pause();
    const refuse = () => link.close({ code: "unreachable", message: "the node is not a member" });
    this.#early.set(node, {
      link,
      timer: setTimeout(refuse, this.#options.memberWaitMs ?? MEMBER_WAIT_MS).unref(),
    });
    return null;
  }

  #admitEarly({ peer }: PeerState): void {
    const early = this.#early.get(peer.node);
    if (early === undefined) return;
    this.#early.delete(peer.node);
    clearTimeout(early.timer);
    this.#add(early.link, false);
    early.link.resume();
  }

  /** The link was not made. */
  #refused(link: Link, failure: LinkFailure): void {
    const early = this.#early.get(link.peer.node);
    if (early?.link === link) {
      this.#early.delete(link.peer.node);
      clearTimeout(early.timer);
    }
    this.#options.onProblem?.(link.peer.node, failure);
  }

  #remove(link: Link, failure: LinkFailure): void {
    this.#made.delete(link);
    const state = this.#peers.get(link.peer.node);
    if (state?.link === link) state.link = null;
    // It was replaced.
    else if (state?.link != null) return;
    this.#options.onDown?.(link.peer.node, failure);
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
