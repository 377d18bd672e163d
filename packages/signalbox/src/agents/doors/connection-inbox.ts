/**
 * What happens to one connection of an instance that runs here, in order: it joins or resumes, receives messages, and leaves. Its client's end
 * may be at another node.
 *
 *   new ─ join → joining → open ─ leave → gone
 *   new ─ (resumed by `resume`) → open ─ detach → gone (the connection continues at another node)
 *
 * Invariants:
 * 1. Messages wait for the end of the connect turn, and `onClose` follows it.
 * 2. `leave` and `detach` exclude each other, and only the first of them has an effect.
 * 3. Where the instance may move, a message that certainly did not run is followed by none that did: messages wait until those before them have an
 *    answer if the instance has left memory meanwhile, because it may have moved away and come back.
 */
import { closeCodeOf, toSignalboxError } from "../../http/render-error.ts";
import type { ConnectionContext } from "../api/connection.ts";
import type { ConnectionGroup } from "../connections/connection-group.ts";
import type { ConnectionFacts, ConnectionSocket } from "../connections/connection-socket.ts";
import { LiveConnection } from "../connections/live-connection.ts";
import type { SocketHub } from "../connections/socket-hub.ts";
import type { AgentDefinition } from "../instance/agent-definition.ts";
import type { Directory } from "../instance/directory.ts";
import type { Instance } from "../instance/instance.ts";
import { type InstanceRef, keyOf } from "../instance/instance-ref.ts";
import { connect, isElsewhere, receive } from "./connection-turns.ts";
import type { Departures } from "./departures.ts";

export interface InboxParts {
  readonly directory: Directory;
  readonly hub: SocketHub;
  readonly departures: Departures;
}

/** A WebSocket that was accepted, as far as its instance is concerned. */
export interface AcceptedSocket {
  readonly definition: AgentDefinition;
  readonly ref: InstanceRef;
  readonly id: string;
  readonly uri: string;
  /** The credential allows reading only. */
  readonly isReadonly: boolean;
}

export class ConnectionInbox {
  readonly connection: LiveConnection;
  readonly #parts: InboxParts;
  readonly #accepted: AcceptedSocket;
  readonly #key: string;
  readonly #group: ConnectionGroup;
  /** The instance is at another node: the connection did not join, or `onClose` did not run. */
  readonly #onElsewhere: (() => void) | null;
  /** Until the connect turn has ended. Never rejects. */
  #joining: Promise<void> | null = null;
  #isElsewhere = false;
  #isGone = false;
  /** Messages without an answer, and the instance that they were given to. */
  readonly #unanswered = new Set<Promise<boolean>>();
  #instance: Instance | null = null;

  constructor(
    parts: InboxParts,
    accepted: AcceptedSocket,
    socket: ConnectionSocket,
    onElsewhere: (() => void) | null = null,
  ) {
    this.#parts = parts;
    this.#accepted = accepted;
    this.#onElsewhere = onElsewhere;
    this.#key = keyOf(accepted.ref);
    this.#group = parts.hub.group(this.#key);
    this.connection = new LiveConnection(this.#group, accepted.id, accepted.uri, socket, accepted.isReadonly);
    parts.hub.add(this.#group);
  }

  join(context: ConnectionContext): void {
    const { connection } = this;
    const fail = (error: unknown) => {
      if (this.#onElsewhere !== null && isElsewhere(error)) {
        this.#isElsewhere = true;
        this.#onElsewhere();
        return;
      }
      const { code, reason } = closeCodeOf(toSignalboxError(error));
      connection.closeNow(code, reason);
    };
    this.#joining = new Promise<void>((resolve) => {
      connect(this.#find, connection, context, resolve).catch(fail).finally(resolve);
    }).then(() => {
      this.#joining = null;
    });
  }

  /** The connection was joined at another node. Its events wait until `resumed` has settled. */
  resume(facts: ConnectionFacts, resumed: Promise<void>): void {
    this.connection.adopt(facts);
    this.#joining = resumed
      .catch((error: unknown) => {
        this.#isElsewhere = isElsewhere(error);
      })
      .then(() => {
        this.#joining = null;
      });
  }

  /** Resolves when the turn of the message has ended; false if it certainly did not run, because the instance is at another node. */
  receive(message: string | Buffer): Promise<boolean> {
    this.connection.messageArrived();
    return this.#joining === null ? this.#run(message) : this.#joining.then(() => this.#run(message));
  }

  #run(message: string | Buffer): Promise<boolean> {
    const { connection } = this;
    // Messages that arrived before the close take effect.
    if (connection.isAdmitted && !this.#isElsewhere) return this.#give(message);
    connection.messageRefused();
    // A connection that did not join here may join at another node.
    return Promise.resolve(!this.#isElsewhere);
  }

  #give(message: string | Buffer): Promise<boolean> {
    if (this.#onElsewhere === null) return receive(this.#find, this.connection, message);
    const instance = this.#tryFind();
    if (this.#unanswered.size > 0 && instance !== this.#instance) {
      const joining = Promise.all(this.#unanswered).then(() => {
        this.#joining = null;
      });
      this.#joining = joining;
      return joining.then(() => this.#run(message));
    }
    this.#instance = instance;
    const answer = receive(this.#find, this.connection, message).then((hasRun) => {
      this.#unanswered.delete(answer);
      if (!hasRun) this.#isElsewhere = true;
      return hasRun;
    });
    this.#unanswered.add(answer);
    return answer;
  }

  /** Calls back when what the connection was sent so far has left. */
  afterOutputs(callback: () => void): void {
    try {
      this.#group.output(callback);
    } catch {
      // The instance has left memory, and its outputs with it.
      callback();
    }
  }

  loseCredential(): void {
    this.connection.loseCredential();
  }

  /** The socket has closed: runs `onClose`. Calls back when that has ended, with false if it certainly did not run. */
  leave(code: number, reason: string, onLeft?: (hasRun: boolean) => void): void {
    if (this.#isGone) {
      onLeft?.(true);
      return;
    }
    this.#isGone = true;
    const { connection } = this;
    const { definition, ref } = this.#accepted;
    connection.markClosed();
    if (connection.listeners?.has("close") !== true) connection.dropListeners();
    this.#release();
    const depart = () => {
      if (this.#isElsewhere) {
        onLeft?.(false);
        return;
      }
      this.#parts.departures.add({
        definition,
        account: ref.account,
        name: ref.name,
        connection,
        code,
        reason,
        onLeft,
      });
    };
    if (this.#joining === null) depart();
    else void this.#joining.then(depart);
  }

  /** The connection goes on at another node: ends it here without `onClose`. Null if its client was not greeted yet. */
  detach(): ConnectionFacts | null {
    const { facts } = this.connection;
    if (this.#isGone) return facts;
    this.#isGone = true;
    this.#release();
    this.connection.detach();
    return facts;
  }

  #release(): void {
    this.#group.leave(this.connection);
    this.#parts.hub.remove(this.#group);
  }

  /** Null if it cannot be here now; who asks for it again learns why. */
  #tryFind(): Instance | null {
    try {
      return this.#find();
    } catch {
      return null;
    }
  }

  readonly #find = (): Instance => {
    const { definition, ref } = this.#accepted;
    return this.#parts.directory.get(definition, ref.account, ref.name, this.#key);
  };
}
