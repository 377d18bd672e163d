/**
 * This process as a node of a cluster: its links to the other nodes, and messages that all of them must have handled.
 *
 * Invariants:
 * 1. The database decides who is a member (`NodeSession`); links follow the members.
 * 2. `tellAll` resolves only when every other living node has handled the message, or was declared dead: then it joins again with everything
 *    read anew.
 * 3. After this node was declared dead, it has a new identity, and its links are opened again under it.
 */
import { createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { awakeSignal } from "../core/awake-time.ts";
import { fullJitterDelay } from "../core/retry.ts";
import type { Secret } from "../core/secret.ts";
import {
  type Link,
  LinkError,
  type LinkHandler,
  Links,
  type LinkStream,
  type Peer,
} from "../engines/node-link/index.ts";
import type { NodeNetwork } from "../contracts/node-network.ts";
import { type LostMember, LostMembers } from "./lost-members.ts";
import type { ClusterMember, ClusterMembership, NodeIdentity, SharedCheck } from "../database/membership.ts";

export interface ClusterNodeOptions {
  readonly secret: Secret;
  /** Secrets that all nodes must share, by environment variable. */
  readonly shared?: readonly { readonly variable: string; readonly values: readonly Secret[] }[];
  /** Where the links listen. Port 0 selects a free port. */
  readonly host: string;
  readonly port: number;
  /** What other nodes connect to. Default: `host`. */
  readonly advertisedHost?: string;
  readonly isEncrypted: boolean;
  readonly onLinkUp?: (node: string) => void;
  readonly onLinkDown?: (node: string, reason: string) => void;
  readonly onLinkProblem?: (node: string | null, reason: string) => void;
}

export type CallService = (payload: Buffer, from: string) => Uint8Array | Promise<Uint8Array>;
export type StreamService = (payload: Buffer, stream: LinkStream, from: string) => void;

/** Between attempts to reach a member; a member that stays unreachable is declared dead within seconds. */
const RETRY = { baseDelayMs: 20, maxDelayMs: 200 };
/** 132 bits of base64url. */
const SHARED_ID_LENGTH = 22;
/** How long a node that stops waits for its last answers to arrive. Turns are waited for before. */
const MAX_LEAVE_MS = 5000;
const NOTHING = new Uint8Array(0);

export class ClusterNode implements ClusterMembership, NodeNetwork {
  readonly #options: ClusterNodeOptions;
  readonly #calls = new Map<string, CallService>();
  readonly #streams = new Map<string, StreamService>();
  readonly #rejoinListeners: (() => Promise<void>)[] = [];
  readonly #changeListeners = new Set<() => void>();
  #links: Links | null = null;
  #identity: NodeIdentity | null = null;
  #members: readonly ClusterMember[] = [];
  readonly #lost = new LostMembers();
  readonly #started = Promise.withResolvers<void>();
  #livingReader: (() => Promise<readonly string[]>) | null = null;
  #isClosed = false;

  constructor(options: ClusterNodeOptions) {
    this.#options = options;
  }

  /** Proves to other nodes that this one has the secret, without revealing it to readers of the database. */
  get secretCheck(): string {
    return this.#sign("signalbox cluster");
  }

  get shared(): readonly SharedCheck[] {
    return (this.#options.shared ?? []).map(({ variable, values }) => ({
      variable,
      ids: values.map((value) => this.#sign(`${variable}\n${value.reveal()}`).slice(0, SHARED_ID_LENGTH)),
    }));
  }

  #sign(text: string): string {
    return createHmac("sha256", this.#options.secret.reveal()).update(text).digest("base64url");
  }

  /** The living nodes, this one included. */
  get members(): readonly ClusterMember[] {
    return this.#members;
  }

  /** Nodes that were declared dead lately, and have not joined again. */
  get lost(): readonly LostMember[] {
    return this.#lost.list(this.#members, Date.now());
  }

  /** Null if the node is gone for long, or has left before this process joined. */
  nameOf(inc: string): string | null {
    return this.#members.find((member) => member.inc === inc)?.name ?? this.#lost.nameOf(inc);
  }

  get identity(): NodeIdentity {
    if (this.#identity === null) throw new Error("the node has not joined yet");
    return this.#identity;
  }

  get self(): string {
    return this.identity.inc;
  }

  /** The nodes to which a link is open at the moment. */
  get linked(): readonly string[] {
    return this.#links?.linked ?? [];
  }

  /** True if the last heartbeat has seen other nodes, and no link to any of them is open: they close the links to a node that was declared dead. */
  get isAbandoned(): boolean {
    const own = this.#identity?.inc;
    return this.linked.length === 0 && this.#members.some(({ inc }) => inc !== own);
  }

  /** Answers calls of other nodes. Must be registered before `start`. */
  serve(name: string, service: CallService): void {
    this.#calls.set(name, service);
  }

  serveStreams(name: string, service: StreamService): void {
    this.#streams.set(name, service);
  }

  withdraw(prefix: string): void {
    for (const services of [this.#calls, this.#streams])
      for (const name of services.keys()) if (name.startsWith(prefix)) services.delete(name);
  }

  /** All services are registered. Until then a call of an unknown service waits: other nodes see this one before its areas exist. */
  start(): void {
    this.#started.resolve();
  }

  /** Called at once when this node has joined again: other nodes may have changed anything meanwhile. */
  onRejoin(listener: () => Promise<void>): void {
    this.#rejoinListeners.push(listener);
  }

  onChange(listener: () => void): () => void {
    this.#changeListeners.add(listener);
    return () => this.#changeListeners.delete(listener);
  }

  #changed(): void {
    for (const listener of this.#changeListeners) listener();
  }

  call(node: string, name: string, payload: Uint8Array, signal?: AbortSignal): Promise<Buffer> {
    if (this.#links !== null) return this.#links.call(node, name, payload, signal);
    return Promise.reject(new LinkError({ code: "unreachable", message: "the node has not joined yet" }));
  }

  /** Null if there is no link to the node at the moment. */
  linkTo(node: string): Link | null {
    return this.#links?.to(node) ?? null;
  }

  /**
   * The message is handled at least once by every node that is alive in the database at the time of the call; handlers must be idempotent.
   * Rejects if the signal aborts.
   */
  async tellAll(name: string, payload: Uint8Array, signal: AbortSignal | null = null): Promise<void> {
    await this.askAll(name, payload, signal);
  }

  /** Like `tellAll`, with the answers. A node that does not know the question, or dies before it answers, has none. */
  async askAll(name: string, payload: Uint8Array, signal: AbortSignal | null = null): Promise<Buffer[]> {
    const living = await this.readLiving();
    const answers = await Promise.all(
      living.filter((inc) => inc !== this.#identity?.inc).map((inc) => this.#ask(inc, name, payload, signal)),
    );
    return answers.filter((answer) => answer !== null);
  }

  async #ask(
    node: string,
    name: string,
    payload: Uint8Array,
    signal: AbortSignal | null,
  ): Promise<Buffer | null> {
    for (let attempt = 1; !this.#isClosed; attempt++) {
      signal?.throwIfAborted();
      try {
        return await this.call(node, name, payload, signal ?? undefined);
      } catch (error) {
        // A member of an older version does not know the message, and has nothing to do.
        if (error instanceof LinkError && error.code === "unknown") return null;
      }
      await sleep(fullJitterDelay(attempt, RETRY));
      if (!(await this.readLiving()).includes(node)) return null;
    }
    return null;
  }

  /**
   * The incarnations that were not declared dead, as committed at the time of the call. The heartbeat's list may lack a node that has just joined,
   * or one that is only late.
   */
  readLiving(): Promise<readonly string[]> {
    if (this.#livingReader === null) throw new Error("the node has not joined yet");
    return this.#livingReader();
  }

  /** The incarnations that were not declared dead, as committed at the time of the call. */
  useLivingNodes(read: () => Promise<readonly string[]>): void {
    this.#livingReader = read;
  }

  async openAddress(identity: NodeIdentity): Promise<{ host: string; port: number }> {
    const {
      host,
      port,
      advertisedHost = host,
      secret,
      isEncrypted,
      onLinkUp,
      onLinkDown,
      onLinkProblem,
    } = this.#options;
    // A further incarnation keeps the port, so that a firewall rule stays valid.
    const lastPort = this.#links?.port;
    await this.#links?.close();
    this.#identity = identity;
    this.#links = await Links.listen(
      { host, port: lastPort ?? port },
      {
        self: { node: identity.inc, cluster: identity.cluster },
        security: { secret: secret.reveal(), isEncrypted },
        handler: this.#handler(),
        isGone: (node) => this.#lost.nameOf(node) !== null,
        onUp: (node) => {
          onLinkUp?.(node);
          this.#changed();
        },
        onDown: (node, { message }) => {
          onLinkDown?.(node, message);
          this.#changed();
        },
        onProblem: (node, { message }) => onLinkProblem?.(node, message),
      },
    );
    return { host: advertisedHost, port: this.#links.port };
  }

  onMembers(members: readonly ClusterMember[]): void {
    const before = this.#members;
    this.#members = members;
    this.#lost.update(before, members, Date.now());
    const own = BigInt(this.#identity?.inc ?? 0);
    const peers: Peer[] = members
      .filter(({ inc }) => BigInt(inc) !== own)
      .map(({ inc, host, port }) => ({ node: inc, host, port, isDialled: BigInt(inc) < own }));
    this.#links?.setPeers(peers);
    if (!haveSameStates(before, members)) this.#changed();
  }

  /** All listeners are called before the first of them has ended: the next heartbeat renews the lease. */
  async onRejoined(): Promise<void> {
    await Promise.all(this.#rejoinListeners.map((listener) => listener()));
  }

  /** Resolves when the others have the answers of their calls, and send nothing more. Called before the node leaves: then they close the links. */
  async leave(): Promise<void> {
    await this.#links?.leave(awakeSignal(MAX_LEAVE_MS));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#links?.close();
  }

  async #callLate(name: string, payload: Buffer, from: string): Promise<Uint8Array> {
    await this.#started.promise;
    const service = this.#calls.get(name);
    if (service === undefined) throw unknown(name);
    return service(payload, from);
  }

  #handler(): LinkHandler {
    return {
      onCall: (name, payload, from) => {
        const service = this.#calls.get(name);
        if (service !== undefined) return service(payload, from.peer.node);
        return this.#callLate(name, payload, from.peer.node);
      },
      onStream: (name, payload, stream, from) => {
        const service = this.#streams.get(name);
        if (service === undefined) throw unknown(name);
        service(payload, stream, from.peer.node);
      },
    };
  }
}

/** Both lists are in the order of the incarnations. */
function haveSameStates(one: readonly ClusterMember[], other: readonly ClusterMember[]): boolean {
  return (
    one.length === other.length &&
    one.every(({ inc, state }, i) => inc === other[i]?.inc && state === other[i].state)
  );
}

function unknown(name: string): LinkError {
  return new LinkError({ code: "unknown", message: `this node does not know ${name}` });
}

/** The answer of a service that has nothing to say. */
export const ACKNOWLEDGED: Uint8Array = NOTHING;
