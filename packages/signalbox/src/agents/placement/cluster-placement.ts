/**
 * Placement over the owners in PostgreSQL and the list of living nodes.
 *
 * Invariants:
 * 1. Work is tried again only if nothing was run: after `InstanceElsewhereError` and `NotSentError`. Every other error ends the attempt.
 * 2. A node that drains receives no new instances, as long as another node is up; its own instances are still reached there.
 * 3. `reach` ends: with the outcome, with the error of the work, with the reason of the signal, or with `overloaded` after `maxReachMs`.
 * 4. A node that is cut off from PostgreSQL begins nothing: the result could not be stored, and the outcome would be unknown. What would run here
 *    waits for PostgreSQL, which may only restart, and is then refused as something that was not run: another node may take it.
 */
import { SignalboxError } from "@signalbox/protocol";
import { overloaded } from "../../core/overload.ts";
import type { NodeNetwork } from "../../contracts/node-network.ts";
import { InstanceElsewhereError, type Ownership } from "../../engines/instance-store/index.ts";
import { databaseName, type InstanceRef } from "../instance/instance-ref.ts";
import type { NodeInc } from "../../core/node-inc.ts";
import { type PlacedWork, NotSentError, type Placement } from "./placement.ts";
import { rendezvous } from "./rendezvous.ts";

/** Wrong owners that are followed at once. Two nodes may answer with each other while an instance moves. */
const MAX_QUICK_MOVES = 2;
const FIRST_PAUSE_MS = 10;
/** A node that has nothing to report may still have become the owner, or have room again. */
const MAX_PAUSE_MS = 200;

/** As long as the control plane waits for PostgreSQL. From the last heartbeat on: after that, requests are refused at once. */
const MAX_CUT_OFF_MS = 5000;

/** Pauses after which PostgreSQL is asked for the owner again: about once a second. */
const ASK_EVERY = 5;

export interface ClusterPlacementOptions {
  readonly network: Pick<NodeNetwork, "self" | "members" | "onChange">;
  readonly ownership: Pick<Ownership, "peek" | "find" | "learn" | "isHeld" | "cutOffMs">;
  /** More than it takes to replace a node that has died. */
  readonly maxReachMs: number;
}

export class ClusterPlacement implements Placement {
  readonly #network: ClusterPlacementOptions["network"];
  readonly #ownership: ClusterPlacementOptions["ownership"];
  readonly #maxReachMs: number;
  /** Those who wait for a change of the members or links. */
  readonly #waiting = new Set<() => void>();

  constructor({ network, ownership, maxReachMs }: ClusterPlacementOptions) {
    this.#network = network;
    this.#ownership = ownership;
    this.#maxReachMs = maxReachMs;
    network.onChange(() => {
      for (const wake of this.#waiting) wake();
    });
  }

  find(ref: InstanceRef): NodeInc | null | Promise<NodeInc | null> {
    const name = databaseName(ref);
    if (this.#ownership.isHeld(name)) return null;
    const known = this.#ownership.peek(name);
    return known === undefined ? this.#ask(name) : this.#choose(name, known.node);
  }

  learn(ref: InstanceRef, node: NodeInc | null): void {
    this.#ownership.learn(databaseName(ref), node);
  }

  async reach<T>(work: PlacedWork<T>): Promise<T> {
    const { ref, signal } = work;
    const endsAt = performance.now() + this.#maxReachMs;
    let moves = 0;
    for (let pauses = 0; ;) {
      signal?.throwIfAborted();
      // Asking PostgreSQL would take seconds to fail.
      if (this.#ownership.cutOffMs > MAX_CUT_OFF_MS && !this.#isKnown(ref)) throw cutOff();
      const node = await this.find(ref);
      let error: unknown;
      try {
        if (node !== null) return await work.there(node);
        this.#requireDatabase();
        return await work.here();
      } catch (thrown) {
        error = thrown;
      }
      if (error instanceof InstanceElsewhereError) {
        this.learn(ref, error.node);
        if (error.node !== node && ++moves <= MAX_QUICK_MOVES) continue;
      } else if (!(error instanceof NotSentError)) throw error;
      const left = endsAt - performance.now();
      if (left <= 0) throw unreachable(error);
      await this.#pause(Math.min(left, MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** pauses), signal);
      pauses += 1;
      // The owner may have handed the instance over, and has if it stops. Otherwise not each time: thousands may wait for a node that was killed.
      if (pauses % ASK_EVERY === 0 || this.#isDraining(node)) this.learn(ref, null);
    }
  }

  #isKnown(ref: InstanceRef): boolean {
    const name = databaseName(ref);
    return this.#ownership.isHeld(name) || this.#ownership.peek(name) !== undefined;
  }

  #requireDatabase(): void {
    const { cutOffMs } = this.#ownership;
    if (cutOffMs > MAX_CUT_OFF_MS) throw cutOff();
    if (cutOffMs > 0) throw new NotSentError("this node cannot reach PostgreSQL");
  }

  #isDraining(node: NodeInc | null): boolean {
    return this.#network.members.some(({ inc, state }) => inc === node && state === "draining");
  }

  /** The owner is in PostgreSQL. */
  async #ask(name: string): Promise<NodeInc | null> {
    const [placement] = await this.#ownership.find([name]);
    return this.#choose(name, placement?.node ?? null);
  }

  #choose(name: string, owner: NodeInc | null): NodeInc | null {
    const { self, members } = this.#network;
    const isAlive = owner !== null && members.some(({ inc }) => inc === owner);
    const node = isAlive ? owner : this.candidate(name);
    return node === self ? null : node;
  }

  /** The node that takes an instance without a living owner. */
  candidate(name: string): NodeInc {
    const { self, members } = this.#network;
    const up = members.filter(({ state }) => state === "up").map(({ inc }) => inc);
    return rendezvous(name, up) ?? self;
  }

  /** Ends early when a node joined, left or died, or a link opened or closed. Rejects if the signal aborts. */
  #pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timer);
        this.#waiting.delete(end);
        signal?.removeEventListener("abort", end);
        if (signal?.aborted === true) reject(signal.reason as Error);
        else resolve();
      };
      const timer = setTimeout(end, ms);
      this.#waiting.add(end);
      signal?.addEventListener("abort", end);
    });
  }
}

function cutOff(): Error {
  return new SignalboxError("storage_unavailable", {
    message: "Nothing was run: this node cannot reach PostgreSQL; another node may answer",
    headers: { "retry-after": "1" },
  });
}

function unreachable(cause: unknown): Error {
  const error = overloaded("The node that runs the instance cannot be reached", { "retry-after": "1" });
  error.cause = cause;
  return error;
}
