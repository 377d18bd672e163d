/**
 * Finds due work whose node is gone: killed, left, or without the instance. Every second, for ever: a scan that fails is repeated like any other.
 *
 * Invariants:
 * 1. An instance with due work whose owner is not alive is woken by the node that the rendezvous hash selects, at once, and by any node after
 *    `ANY_NODE_MS`. An instance that this node owns is woken here.
 * 2. Nothing here decides who runs an instance: waking claims it, and the claim fails if a living node owns it.
 * 3. Instances are woken one after the other as there is room (`Waker`), agents and accounts in turns, page by page.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import { repeat, type Repetition } from "../../core/repeat.ts";
import type { NodeNetwork } from "../../contracts/node-network.ts";
import type { Ownership } from "../../engines/instance-store/index.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { databaseName, keyOf } from "../instance/instance-ref.ts";
import type { DueEntry, InstanceCatalog } from "../instance/instance-catalog.ts";
import type { DueSource } from "../instance/waker.ts";

const INTERVAL_MS = 1000;
/** Longer than a node needs to notice that another one is gone, and to claim. */
const ANY_NODE_MS = 5000;

export interface OrphansParts {
  readonly network: Pick<NodeNetwork, "self" | "members">;
  readonly ownership: Pick<Ownership, "isHeld" | "learn" | "find">;
  readonly catalog: Pick<InstanceCatalog, "orphans">;
  readonly clock: Clock;
  /** Measures how long an orphan has been known. */
  readonly steadyClock: Clock;
  readonly logger: Logger;
  /** The node that takes an instance without a living owner. */
  readonly candidate: (name: string) => string;
  readonly wakeAll: (source: DueSource) => Promise<void>;
}

export class Orphans {
  readonly #parts: OrphansParts;
  /** When orphans of other nodes were first seen, by key. */
  #seen = new Map<string, number>();
  #repetition: Repetition | null = null;
  #isStopped = false;
  #woken = 0;

  constructor(parts: OrphansParts) {
    this.#parts = parts;
  }

  /** Instances that were woken here since the start. */
  get woken(): number {
    return this.#woken;
  }

  start(): void {
    this.#repetition = repeat(
      INTERVAL_MS,
      () => this.scan(),
      (err) => {
        // The heartbeats report that PostgreSQL is unavailable.
        if (!(err instanceof SignalboxError && err.id === "storage_unavailable"))
          this.#parts.logger.warn({ err }, "looking for due work of dead nodes failed; retrying");
      },
    );
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#repetition?.stop();
  }

  /** One pass over all of them. */
  async scan(): Promise<void> {
    const { catalog, clock, network, wakeAll } = this.#parts;
    const seen = new Map<string, number>();
    const living = () => network.members.map(({ inc }) => inc);
    await wakeAll({
      read: (selection, limit) => catalog.orphans(living(), selection, clock.now(), limit),
      // While this node is not a member, it can claim nothing.
      select: async (page) =>
        this.#isStopped || !living().includes(network.self)
          ? null
          : this.#select(page, new Set(living()), seen),
      woken: () => (this.#woken += 1),
    });
    this.#seen = seen;
  }

  /** Those that this node should take. */
  async #select(
    page: readonly DueEntry[],
    living: ReadonlySet<string>,
    seen: Map<string, number>,
  ): Promise<readonly DueEntry[]> {
    if (page.length === 0) return page;
    const { ownership, network, candidate, steadyClock } = this.#parts;
    const names = page.map((entry) => databaseName(entry));
    // What this node has learned may be older than the entry.
    for (const name of names) if (!ownership.isHeld(name)) ownership.learn(name, null);
    const owners = await ownership.find(names);
    const now = steadyClock.now();
    return page.filter((entry, i) => {
      const name = names[i] ?? "";
      const owner = owners[i]?.node ?? null;
      if (ownership.isHeld(name) || owner === network.self) return true;
      if (owner !== null && living.has(owner)) return false;
      if (candidate(name) === network.self) return true;
      const key = keyOf(entry);
      const since = this.#seen.get(key) ?? now;
      seen.set(key, since);
      return now - since >= ANY_NODE_MS;
    });
  }
}
