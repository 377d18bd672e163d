/**
 * The connections of one edge to one instance, at the node that runs the instance.
 *
 *   open ─ the instance moved → moving → moved (the edge opens a session at the new owner)
 *     └ the edge ended the session, its node is gone, or it sent garbage → over
 *
 * A stream that breaks changes nothing as long as the edge's node lives: the edge continues the session on another stream.
 *
 * Invariants:
 * 1. A frame for several connections leaves once, with the list of its receivers.
 * 2. Every message and every close is answered: `ended`, or `notRun` if it certainly did not run here. `moved` follows the last answer, and says how
 *    many items had arrived: later ones certainly did not run.
 * 3. `onClose` runs for a connection if its socket closed or its node is gone, and never because the instance moved.
 */
import type { LinkFailure, LinkStream } from "../../../engines/node-link/index.ts";
import type { LiveConnection } from "../../connections/live-connection.ts";
import { ConnectionInbox, type InboxParts } from "../../doors/connection-inbox.ts";
import { isElsewhere, resume } from "../../doors/connection-turns.ts";
import type { AgentDefinition } from "../../instance/agent-definition.ts";
import { type InstanceRef, keyOf } from "../../instance/instance-ref.ts";
import { ABANDONED, encodeWelcome } from "./hello.ts";
import { ItemChannel, type Outgoing, readAttached } from "./item-channel.ts";
import { decodeOpened, encodeFacts, type OpenedConnection, toContext } from "./opened-connection.ts";
import { type RemoteOutput, RemoteSocket } from "./remote-socket.ts";
import {
  decodeClose,
  decodeMessage,
  encodeClose,
  encodeCount,
  encodeItem,
  encodeNumbers,
  encodeReceivers,
  type Item,
  ITEM_KINDS,
  ItemError,
  readNumber,
} from "./socket-items.ts";

/** How long turns that have begun may take to end before the edge learns that the instance has moved. Longer than the grace of a hand-over. */
const MOVE_GRACE_MS = 6000;
/** How long answers for an edge without connections are kept while there is no link to it. */
const EMPTY_SESSION_MS = 30_000;
/** The socket ended without a close frame (RFC 6455, section 7.4.1). */
const ABNORMAL = 1006;

export interface OwnerSessionParts extends InboxParts {
  readonly definition: AgentDefinition;
  readonly ref: InstanceRef;
  /** The node of the sockets. */
  readonly edge: string;
  /** The session is over: it must be forgotten. */
  readonly onOver: (session: OwnerSession) => void;
  readonly onDefect: (failure: LinkFailure) => void;
}

interface Remote {
  readonly socket: RemoteSocket;
  readonly inbox: ConnectionInbox;
}

/** A frame that more receivers may join until it leaves. */
class OutgoingFrame implements Outgoing {
  readonly frame: Buffer;
  readonly receivers: RemoteSocket[] = [];

  constructor(frame: Buffer) {
    this.frame = frame;
  }

  encode(): Buffer[] {
    const numbers = this.receivers.map(({ number }) => number);
    return encodeItem(ITEM_KINDS.frame, encodeReceivers(numbers), this.frame);
  }

  onArrived(): void {
    for (const receiver of this.receivers) receiver.bufferedAmount -= this.frame.length;
  }
}

export class OwnerSession implements RemoteOutput {
  readonly key: string;
  readonly edge: string;
  readonly #parts: OwnerSessionParts;
  readonly #remotes = new Map<number, Remote>();
  readonly #channel = new ItemChannel((item) => this.#onItem(item));
  /** Connections whose facts are in the queue. */
  readonly #dirty = new Set<RemoteSocket>();
  /** Connections that resume together. */
  #resuming: { connections: LiveConnection[]; resumed: PromiseWithResolvers<void> } | null = null;
  /** Messages and closes without an answer. */
  readonly #running = new Set<Promise<unknown>>();
  #phase: "open" | "moving" | "over" = "open";
  #expiry: NodeJS.Timeout | undefined;

  constructor(parts: OwnerSessionParts) {
    this.#parts = parts;
    this.key = keyOf(parts.ref);
    this.edge = parts.edge;
  }

  get size(): number {
    return this.#remotes.size;
  }

  /** Begins, or continues after a break. `received` is how many items the edge has. */
  attach(stream: LinkStream, received: number, existed: boolean): void {
    if (this.#phase === "open") clearTimeout(this.#expiry);
    this.#channel.attach(stream, received, encodeWelcome({ received: this.#channel.received, existed }));
    readAttached(this.#channel, stream, (failure) => this.#onStreamEnd(stream, failure));
  }

  /** The instance runs at another node from now on. */
  async moved(node: string | null): Promise<void> {
    if (this.#phase !== "open") return;
    this.#phase = "moving";
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise((resolve) => (timer = setTimeout(resolve, MOVE_GRACE_MS)));
    await Promise.race([Promise.allSettled(this.#running), patience]);
    clearTimeout(timer);
    // It changes during the wait.
    if ((this.#phase as string) === "over") return;
    for (const { inbox } of this.#remotes.values()) inbox.detach();
    this.#remotes.clear();
    this.#send(ITEM_KINDS.moved, encodeCount(this.#channel.received), Buffer.from(node ?? ""));
    this.#channel.flush();
    this.#expiry = setTimeout(() => this.#over(), EMPTY_SESSION_MS).unref();
  }

  /** The node of the edge is gone, and the sockets with it. */
  edgeGone(): void {
    const remotes = [...this.#remotes.values()];
    this.#over();
    for (const { inbox, socket } of remotes) {
      socket.markClosed();
      inbox.leave(ABNORMAL, "");
    }
  }

  /** This node is not the owner of any instance any more: it reports nothing to the edges. */
  drop(): void {
    for (const { inbox } of this.#remotes.values()) inbox.detach();
    this.#over();
  }

  // ── Output of the connections ──

  write(socket: RemoteSocket, frame: Buffer): void {
    const { last } = this.#channel;
    if (last instanceof OutgoingFrame && last.frame === frame) {
      last.receivers.push(socket);
      return;
    }
    const outgoing = new OutgoingFrame(frame);
    outgoing.receivers.push(socket);
    this.#channel.send(outgoing);
  }

  close({ number }: RemoteSocket, code: number, reason: string): void {
    this.#send(ITEM_KINDS.close, encodeClose({ number, ticket: 0, code, reason }));
  }

  /** The facts are read when they leave, so that many changes in one turn are sent once. */
  factsChanged(socket: RemoteSocket): void {
    if (this.#dirty.has(socket)) return;
    this.#dirty.add(socket);
    this.#channel.send({
      encode: () => {
        this.#dirty.delete(socket);
        const facts = this.#remotes.get(socket.number)?.inbox.connection.facts ?? null;
        const bytes = facts === null ? Buffer.from("") : encodeFacts(facts);
        return encodeItem(ITEM_KINDS.facts, encodeNumbers(socket.number), bytes);
      },
    });
  }

  // ── Items of the edge ──

  #onItem({ kind, payload }: Item): void {
    if (kind !== ITEM_KINDS.open) this.#resumeAll();
    switch (kind) {
      case ITEM_KINDS.open:
        this.#open(readNumber(payload, 0), decodeOpened(payload.subarray(4)));
        return;
      case ITEM_KINDS.message: {
        const { number, ticket, message } = decodeMessage(payload);
        const inbox = this.#remotes.get(number)?.inbox;
        if (inbox === undefined || this.#phase !== "open") this.#answer(number, ticket, false);
        // The memory around the bytes belongs to the stream.
        else this.#run(number, ticket, inbox, inbox.receive(message));
        return;
      }
      case ITEM_KINDS.credentialEnded:
        this.#remotes.get(readNumber(payload, 0))?.inbox.loseCredential();
        return;
      case ITEM_KINDS.closed:
        this.#closed(payload);
        return;
      default:
        throw new ItemError(`an unknown kind of item: ${kind}`);
    }
  }

  #open(number: number, { id, uri, isReadonly, context, facts }: OpenedConnection): void {
    if (this.#phase !== "open") return;
    if (this.#remotes.has(number)) throw new ItemError("a connection was opened twice");
    const { definition, ref, hub } = this.#parts;
    const socket = new RemoteSocket(number, this, hub.limits);
    const accepted = { definition, ref, id, uri, isReadonly };
    const inbox = new ConnectionInbox(this.#parts, accepted, socket, () => void this.moved(null));
    this.#remotes.set(number, { socket, inbox });
    if (facts === null) {
      if (context === null) throw new ItemError("a new connection has no request");
      inbox.join(toContext(context));
      return;
    }
    if (this.#resuming === null) {
      this.#resuming = { connections: [], resumed: Promise.withResolvers() };
      // No other code handles the error.
      this.#resuming.resumed.promise.catch(() => undefined);
      queueMicrotask(() => this.#resumeAll());
    }
    inbox.resume(facts, this.#resuming.resumed.promise);
    this.#resuming.connections.push(inbox.connection);
  }

  #resumeAll(): void {
    if (this.#resuming === null) return;
    const { connections, resumed } = this.#resuming;
    this.#resuming = null;
    const { directory, definition, ref } = this.#parts;
    const fail = (error: unknown) => {
      resumed.reject(error);
      if (isElsewhere(error)) void this.moved(null);
      else for (const connection of connections) connection.closeNow(1013, "the instance cannot be reached");
    };
    try {
      const instance = directory.get(definition, ref.account, ref.name, this.key);
      resume(instance, () => connections.filter(({ isDetached }) => !isDetached)).then(resumed.resolve, fail);
    } catch (error) {
      fail(error);
    }
  }

  #run(number: number, ticket: number, inbox: ConnectionInbox, turn: Promise<boolean>): void {
    const answered = turn.then((hasRun) => {
      if (hasRun) inbox.afterOutputs(() => this.#answer(number, ticket, true));
      else {
        this.#answer(number, ticket, false);
        void this.moved(null);
      }
    });
    this.#running.add(answered);
    void answered.finally(() => this.#running.delete(answered));
  }

  #closed(payload: Buffer): void {
    const { number, ticket, code, reason } = decodeClose(payload);
    const remote = this.#remotes.get(number);
    if (remote === undefined || this.#phase !== "open") {
      this.#answer(number, ticket, remote === undefined && this.#phase === "open");
      return;
    }
    this.#remotes.delete(number);
    remote.socket.markClosed();
    const left = new Promise<void>((resolve) => {
      remote.inbox.leave(code, reason, (hasRun) => {
        this.#answer(number, ticket, hasRun);
        if (!hasRun) void this.moved(null);
        resolve();
      });
    });
    this.#running.add(left);
    void left.finally(() => this.#running.delete(left));
  }

  #answer(number: number, ticket: number, hasRun: boolean): void {
    this.#send(hasRun ? ITEM_KINDS.ended : ITEM_KINDS.notRun, encodeNumbers(number, ticket));
  }

  #send(kind: number, ...pieces: readonly Buffer[]): void {
    if (this.#phase !== "over") this.#channel.send({ encode: () => encodeItem(kind, ...pieces) });
  }

  #onStreamEnd(stream: LinkStream, failure: LinkFailure | null): void {
    if (!this.#channel.detach(stream)) return;
    if (failure?.code === "defect") this.#parts.onDefect(failure);
    if (failure?.code === ABANDONED.code) this.drop();
    // The edge has ended the session, or has sent what it may not send: its sockets are closed, or will be.
    else if (failure === null || failure.code === "defect") this.edgeGone();
    else if (this.#remotes.size === 0)
      this.#expiry = setTimeout(() => this.#over(), EMPTY_SESSION_MS).unref();
  }

  #over(): void {
    if (this.#phase === "over") return;
    this.#phase = "over";
    clearTimeout(this.#expiry);
    this.#remotes.clear();
    this.#channel.close();
    this.#parts.onOver(this);
  }
}
