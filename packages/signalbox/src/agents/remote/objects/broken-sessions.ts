/**
 * Sessions whose link broke while they had WebSockets: they go on when the link is there again, and are lost with the other node or after a time. Both
 * sides wait; only the caller can open a stream.
 */
import type { NodeNetwork } from "../../../contracts/node-network.ts";
import type { NodeInc } from "../../../core/node-inc.ts";

/** Between attempts to go on, besides changes of the network. */
const CONTINUE_MS = 200;

export interface BrokenSession {
  /** The other side. */
  readonly node: NodeInc;
  readonly isBroken: boolean;
  /** Tries to go on. */
  continue(): void;
  /** Ends the session: its WebSockets are cut. */
  lose(): void;
}

export class BrokenSessions {
  readonly #network: Pick<NodeNetwork, "self" | "members">;
  readonly #maxBrokenMs: number;
  /** With the number of attempts, and not a time: after a pause of this process the time would be over before the first attempt. */
  readonly #attempts = new Map<BrokenSession, number>();
  #self: NodeInc;
  #timer: NodeJS.Timeout | undefined;

  constructor(network: Pick<NodeNetwork, "self" | "members" | "onChange">, maxBrokenMs: number) {
    this.#network = network;
    this.#maxBrokenMs = maxBrokenMs;
    this.#self = network.self;
    network.onChange(() => this.#check(0));
  }

  add(session: BrokenSession): void {
    this.#attempts.set(session, 0);
    this.#timer ??= setInterval(() => this.#check(1), CONTINUE_MS).unref();
  }

  #check(counted: number): void {
    const living = new Set(this.#network.members.map(({ inc }) => inc));
    // Others have given up a node that was declared dead, and what it had of them.
    const isOther = this.#self !== this.#network.self;
    this.#self = this.#network.self;
    for (const [session, before] of this.#attempts) {
      const attempts = before + counted;
      this.#attempts.set(session, attempts);
      if (!session.isBroken) this.#attempts.delete(session);
      else if (isOther || !living.has(session.node) || attempts * CONTINUE_MS > this.#maxBrokenMs) {
        this.#attempts.delete(session);
        session.lose();
      } else session.continue();
    }
    if (this.#attempts.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
