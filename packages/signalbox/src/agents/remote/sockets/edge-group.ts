/**
 * The WebSockets of one instance at this node, in a cluster. They all have the instance at the same place.
 *
 *   locating ─ the instance is here → here ─ it moved away ─┐
 *      ▲  └ it is at another node → there ─ moved or lost ──┤
 *      └────────────────────────────────────────────────────┘
 *
 * Invariants:
 * 1. While the instance is being located, events wait. They are given to the owner in order, after its connections are open.
 * 2. An instance that moved away from here is located again only when the turns that had begun have ended.
 * 3. If the instance cannot be reached in time, the sockets are closed with the code of the error; clients connect again.
 */
import { SignalboxError } from "@signalbox/protocol";
import { repeat, type Repetition } from "../../../core/repeat.ts";
import { closeCodeOf, toSignalboxError } from "../../../http/render-error.ts";
import type { NodeNetwork } from "../../../contracts/node-network.ts";
import { InstanceElsewhereError } from "../../../engines/instance-store/index.ts";
import type { Logger } from "../../../telemetry/logger.ts";
import type { ConnectionFacts } from "../../connections/connection-socket.ts";
import { ConnectionInbox, type InboxParts } from "../../doors/connection-inbox.ts";
import { isElsewhere, resume } from "../../doors/connection-turns.ts";
import type { AgentDefinition } from "../../instance/agent-definition.ts";
import { type InstanceRef, keyOf } from "../../instance/instance-ref.ts";
import type { Placement } from "../../placement/placement.ts";
import type { EdgeConnection, EdgeEvent, EdgeHome } from "./edge-connection.ts";
import { applyItem, sendCredentialEnded, sendEvent, sendOpened } from "./edge-items.ts";
import { EdgeSession } from "./edge-session.ts";
/** How long turns that have begun may take to end after the instance has moved away. Longer than the grace of a hand-over. */
const MOVE_GRACE_MS = 6000;
/** Between attempts to continue a broken session, besides changes of the network. */
const CONTINUE_MS = 200;
/** Between two look-ups of an instance that moves again and again. */
const RELOCATE_PAUSE_MS = 100;

export interface EdgeGroupParts extends InboxParts {
  readonly network: NodeNetwork;
  readonly placement: Placement;
  readonly logger: Logger;
  /** How long a link may be broken before the sockets are closed: longer than it takes until a lost owner is declared dead and replaced. */
  readonly maxBrokenMs: number;
  readonly onEmpty: (group: EdgeGroup) => void;
}

type Place =
  | { readonly kind: "locating" }
  | { readonly kind: "here" }
  | { readonly kind: "there"; readonly session: EdgeSession };

const LOCATING: Place = { kind: "locating" };

export class EdgeGroup implements EdgeHome {
  readonly key: string;
  waitingBytes = 0;
  readonly #parts: EdgeGroupParts;
  readonly #definition: AgentDefinition;
  readonly #ref: InstanceRef;
  readonly #connections = new Map<number, EdgeConnection>();
  /** Turns here that have begun. */
  readonly #running = new Set<Promise<unknown>>();
  readonly #closing = new AbortController();
  #place: Place = LOCATING;
  #isLocating = false;
  /** Turns here are ending, because the instance has moved away. */
  #isLeaving = false;
  /** Another node runs the instance, or was the last one to run it. */
  #isKnownElsewhere = false;
  #locatedAt = 0;
  /** While the link to the owner is broken. */
  #mending: Repetition | null = null;

  constructor(parts: EdgeGroupParts, definition: AgentDefinition, ref: InstanceRef) {
    this.#parts = parts;
    this.#definition = definition;
    this.#ref = ref;
    this.key = keyOf(ref);
  }

  get size(): number {
    return this.#connections.size;
  }

  add(connection: EdgeConnection): void {
    this.#connections.set(connection.number, connection);
    // The usual case needs no look-up and no promise.
    const isFree = this.#place === LOCATING && !this.#isLocating && !this.#isLeaving;
    const found = isFree ? this.#parts.placement.find(this.#ref) : undefined;
    if (found === null) this.#place = { kind: "here" };
    // `#locate` asks again, and learns of the error.
    else if (found instanceof Promise) found.catch(() => undefined);
    if (this.#place.kind === "here") this.#openHere(connection);
    else if (this.#place.kind === "there") this.#openThere(this.#place.session, connection);
    else this.#locate();
  }

  // ── Events of the sockets ──

  take(connection: EdgeConnection, event: EdgeEvent): void {
    if (this.#place.kind === "here") this.#giveHere(connection, event);
    else if (this.#place.kind === "there") sendEvent(this.#place.session, connection, event);
    // No owner has accepted the client: its close is reported to none.
    else if (event.kind === "close" && connection.facts === null && connection.inbox === null)
      connection.end(event.code, event.reason);
  }

  loseCredential(connection: EdgeConnection): void {
    if (this.#place.kind === "here") connection.inbox?.loseCredential();
    else if (this.#place.kind === "there") sendCredentialEnded(this.#place.session, connection);
  }

  forget(connection: EdgeConnection): void {
    if (!this.#connections.delete(connection.number) || this.#connections.size > 0) return;
    this.#closing.abort();
    this.#stopMending();
    if (this.#place.kind === "there") this.#place.session.end();
    this.#parts.onEmpty(this);
  }

  // ── Changes of the place ──

  /** The instance runs at another node, or should. */
  moved(): void {
    if (this.#place.kind === "here") void this.#leaveHere();
  }

  nodesChanged(): void {
    if (this.#place.kind !== "there") return;
    const { session } = this.#place;
    if (!this.#parts.network.members.some(({ inc }) => inc === session.node)) session.lose();
    else session.continue();
  }

  /** This node was declared dead: owners elsewhere have run `onClose` for its sockets. */
  rejoined(): void {
    if (this.#place.kind === "here") this.moved();
    else if (this.#isKnownElsewhere) {
      const place = this.#place;
      this.#place = LOCATING;
      for (const connection of this.#all())
        connection.end(1012, "the server has lost its connection to the cluster");
      if (place.kind === "there") place.session.end();
    }
  }

  #locate(): void {
    if (this.#isLocating || this.#isLeaving || this.#all().length === 0) return;
    this.#isLocating = true;
    const wait = Math.max(0, this.#locatedAt + RELOCATE_PAUSE_MS - performance.now());
    const located =
      wait === 0
        ? this.#reach()
        : new Promise<void>((resolve) => {
            setTimeout(() => resolve(this.#reach()), wait);
          });
    void located.finally(() => {
      this.#isLocating = false;
      this.#locatedAt = performance.now();
      // Moved again before the promise was settled.
      if (this.#place === LOCATING) this.#locate();
    });
  }

  async #reach(): Promise<void> {
    const { placement } = this.#parts;
    try {
      await placement.reach({
        ref: this.#ref,
        here: () => this.#arriveHere().catch(throwElsewhere),
        there: (node) => this.#arriveThere(node),
        signal: this.#closing.signal,
      });
    } catch (error) {
      this.#fail(error);
    }
  }

  /** No node can run the instance at the moment, or no node may. */
  #fail(error: unknown): void {
    if (this.#closing.signal.aborted) return;
    const known = toSignalboxError(error);
    if (known.id === "internal")
      this.#parts.logger.error({ err: error, instance: this.key }, "sockets cannot reach their instance");
    const { code, reason } = closeCodeOf(known);
    for (const connection of this.#all()) connection.end(code, reason);
  }

  /** Those that an owner has to know of. */
  #all(): EdgeConnection[] {
    return [...this.#connections.values()].filter(({ isEnded }) => !isEnded);
  }

  // ── The instance is here ──

  async #arriveHere(): Promise<void> {
    const { directory } = this.#parts;
    const isResumed = this.#all().some(({ facts }) => facts !== null);
    if (isResumed && !(await directory.exists(this.#ref))) this.#dismiss();
    const instance = directory.get(this.#definition, this.#ref.account, this.#ref.name, this.key);
    await resume(instance, () => []);
    this.#place = { kind: "here" };
    this.#isKnownElsewhere = false;
    const connections = this.#all();
    const greeted = connections.filter(({ facts }) => facts !== null);
    const live = () =>
      greeted.flatMap(({ inbox }) =>
        inbox === null || inbox.connection.isDetached ? [] : [inbox.connection],
      );
    if (greeted.length > 0) {
      const resumed = resume(instance, live);
      for (const connection of greeted) {
        connection.beginResume();
        this.#createInbox(connection).resume(connection.facts as ConnectionFacts, resumed);
      }
      resumed.catch((error: unknown) => {
        if (isElsewhere(error)) this.moved();
        else for (const connection of greeted) connection.close(1013, "the instance cannot be reached");
      });
    }
    for (const connection of connections) {
      if (connection.inbox === null) this.#openHere(connection);
      this.#giveAll(connection);
    }
  }

  #createInbox(connection: EdgeConnection): ConnectionInbox {
    const inbox = new ConnectionInbox(this.#parts, connection.accepted, connection, () => this.moved());
    // The credential may have ended while the instance was being located.
    if (connection.hasLostCredential) inbox.loseCredential();
    connection.inbox = inbox;
    return inbox;
  }

  #openHere(connection: EdgeConnection): void {
    this.#createInbox(connection).join(connection.context);
  }

  #giveHere(connection: EdgeConnection, event: EdgeEvent): void {
    const { inbox } = connection;
    if (inbox === null) return;
    event.item = 0;
    const ended = (hasRun: boolean) => {
      if (hasRun) connection.handled(event.ticket);
      else {
        connection.notRun(event.ticket);
        this.moved();
      }
    };
    const turn =
      event.kind === "message"
        ? inbox.receive(event.message).then(ended)
        : new Promise<void>((resolve) => {
            inbox.leave(event.code, event.reason, (hasRun) => {
              ended(hasRun);
              resolve();
            });
          });
    this.#running.add(turn);
    void turn.finally(() => this.#running.delete(turn));
  }

  async #leaveHere(): Promise<void> {
    this.#place = LOCATING;
    this.#isLeaving = true;
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise((resolve) => (timer = setTimeout(resolve, MOVE_GRACE_MS)));
    await Promise.race([Promise.allSettled(this.#running), patience]);
    clearTimeout(timer);
    for (const connection of this.#all()) {
      connection.facts = connection.inbox?.detach() ?? connection.facts;
      connection.inbox = null;
      connection.ownerGone(Infinity);
    }
    this.#isLeaving = false;
    this.#locate();
  }

  // ── The instance is at another node ──

  async #arriveThere(node: string): Promise<void> {
    const { network } = this.#parts;
    const session: EdgeSession = new EdgeSession({
      network,
      node,
      ref: this.#ref,
      events: {
        onItem: (item) => applyItem(item, (number) => this.#connections.get(number)),
        onMoved: (owner, received) => this.#leaveThere(owner, received),
        onLost: (sent) => this.#leaveThere(null, sent),
        onBroken: () => this.#onBroken(session),
      },
    });
    const mayCreate = this.#all().some(({ facts }) => facts === null);
    const { existed } = await session.open(mayCreate);
    // What followed the welcome in the same bytes has been handled: the instance has moved on, or its node is gone.
    if (session.isOver) throw new InstanceElsewhereError(null);
    if (!existed) this.#dismiss();
    if (this.#all().length === 0) {
      session.end();
      return;
    }
    this.#place = { kind: "there", session };
    this.#isKnownElsewhere = true;
    for (const connection of this.#all()) {
      this.#openThere(session, connection);
      this.#giveAll(connection);
    }
  }

  #openThere(session: EdgeSession, connection: EdgeConnection): void {
    connection.beginResume();
    try {
      sendOpened(session, connection);
    } catch (error) {
      this.#parts.logger.error(
        { err: error, instance: this.key },
        "the props of agents.authorize cannot be sent to another node: they must be plain values",
      );
      const { code, reason } = closeCodeOf(new SignalboxError("internal"));
      connection.end(code, reason);
    }
  }

  #leaveThere(node: string | null, received: number): void {
    if (this.#place.kind !== "there") return;
    this.#place = LOCATING;
    this.#stopMending();
    this.#parts.placement.learn(this.#ref, node);
    for (const connection of this.#all()) {
      connection.ownerGone(received);
      const isClosed = connection.events.some(({ kind }) => kind === "close");
      if (isClosed && connection.facts === null) connection.end(1006, "");
    }
    this.#locate();
  }

  /** The link may come back, the owner may be declared dead, or the instance may have moved meanwhile. */
  #onBroken(session: EdgeSession): void {
    const { placement, logger, maxBrokenMs } = this.#parts;
    // Attempts are counted, and not time: after a pause of this process the time would be over before the first attempt.
    let attempts = 0;
    const check = async () => {
      attempts += 1;
      if (!session.isBroken) {
        this.#stopMending();
        return;
      }
      session.continue();
      const node = await placement.find(this.#ref);
      if (!session.isBroken) return;
      if (node !== session.node) session.lose();
      else if (attempts * CONTINUE_MS > maxBrokenMs) {
        for (const connection of this.#connections.values())
          if (!connection.isClosed) connection.close(1013, "the instance cannot be reached");
      }
    };
    this.#stopMending();
    this.#mending = repeat(CONTINUE_MS, check, (error) =>
      logger.debug({ err: error, instance: this.key }, "cannot look for an instance; retrying"),
    );
  }

  #stopMending(): void {
    void this.#mending?.stop();
    this.#mending = null;
  }

  #giveAll(connection: EdgeConnection): void {
    for (const event of connection.events)
      if (event.item === null && !connection.isEnded) this.take(connection, event);
  }

  /** The instance was destroyed while its sockets were without an owner. */
  #dismiss(): void {
    const { code } = closeCodeOf(new SignalboxError("agent_destroyed"));
    for (const connection of this.#all())
      if (connection.facts !== null) connection.end(code, "the instance was destroyed");
  }
}

/** A node that stops has handed its instances over, or will; a fenced instance is another node's, or starts again here. Nothing was run. */
function throwElsewhere(error: unknown): never {
  const isStopping = error instanceof SignalboxError && error.id === "stopping";
  if (error instanceof InstanceElsewhereError) throw error;
  throw isStopping || isElsewhere(error) ? new InstanceElsewhereError(null) : error;
}
