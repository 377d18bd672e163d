/** The instances that this node owns, and what it knows of the owners of others. `ownership.ts` has the interface and the invariants. */
import { growingCache } from "../../../core/growing-cache.ts";
import { retry } from "../../../core/retry.ts";
import type { InstancePaths } from "../instance-path.ts";
import { type InstanceClaim, StoreClaims } from "./claims.ts";
import type { HeldInstance } from "./held-instance.ts";
import type { History, Store } from "./history.ts";
import type { NodeInc } from "../../../core/node-inc.ts";
import {
  type ClaimOutcome,
  type Fence,
  type FenceReason,
  InstanceFencedError,
  type InstancePlacement,
  type Nodes,
  type Ownership,
  type TakeOver,
} from "./ownership.ts";
import type { OwnershipCounters } from "./ownership-counters.ts";
import { RecentTakeOvers } from "./recent-take-overs.ts";
import { toClientError } from "./unavailable.ts";

/** Instances in one question. */
const MAX_GROUP = 64;
/** Instances in one comparison. */
const MAX_COMPARED = 1000;
const LOSS_RETRY = { maxAttempts: 10, baseDelayMs: 100, maxDelayMs: 2000 };
/** Owners of instances elsewhere; about 100 bytes each. */
const MAX_KNOWN = 100_000;

export interface OwnedInstancesOptions {
  /** The first one says where each instance is. */
  readonly stores: readonly Store[];
  readonly nodes: Nodes;
  readonly paths: Pick<InstancePaths, "find">;
  /** The version of the base schema. */
  readonly format: number;
  readonly figures: OwnershipCounters;
}

export class OwnedInstances implements Ownership {
  readonly #options: OwnedInstancesOptions;
  readonly #held = new Map<string, HeldInstance>();
  readonly #known = growingCache<{ readonly node: NodeInc | null }>(MAX_KNOWN);
  readonly #listeners: ((fence: Fence) => void)[] = [];
  /** By store. */
  readonly #claims = new Map<Store, StoreClaims>();
  readonly #takeOvers = new RecentTakeOvers();

  constructor(options: OwnedInstancesOptions) {
    this.#options = options;
    for (const store of options.stores)
      this.#claims.set(
        store,
        new StoreClaims({
          ...options,
          store,
          find: (name) => this.#held.get(name),
          onHeld: (instance) => {
            this.#held.set(instance.name, instance);
            this.#known.delete(instance.name);
          },
          onElsewhere: (name, node) => this.learn(name, node),
          onTakeOver: (name, from) => this.#takeOvers.add({ name, from, at: Date.now() }),
          storeFor: (key) => this.#storeFor(key),
          passOn: (claim, number) => this.#passOn(claim, number),
        }),
      );
  }

  get recentTakeOvers(): readonly TakeOver[] {
    return this.#takeOvers.list;
  }

  get cutOffMs(): number {
    return this.#options.nodes.cutOffMs ?? 0;
  }

  get figures(): OwnershipCounters {
    return this.#options.figures;
  }

  get held(): Iterable<string> {
    return this.#held.keys();
  }

  isHeld(name: string): boolean {
    return this.#held.has(name);
  }

  epochOf(name: string): number | undefined {
    return this.#held.get(name)?.epoch;
  }

  peek(name: string): InstancePlacement | undefined {
    return this.#held.has(name) ? { node: this.#options.nodes.self } : this.#known.get(name);
  }

  async find(names: readonly string[]): Promise<readonly InstancePlacement[]> {
    const unknown = names.filter((name) => this.peek(name) === undefined);
    for (let i = 0; i < unknown.length; i += MAX_GROUP) await this.#read(unknown.slice(i, i + MAX_GROUP));
    return names.map((name) => this.peek(name) ?? { node: null });
  }

  learn(name: string, node: NodeInc | null): void {
    if (node === null) this.#known.delete(name);
    else this.#known.set(name, { node });
  }

  claim(
    names: readonly string[],
    { isForced = false }: { readonly isForced?: boolean } = {},
  ): Promise<readonly ClaimOutcome[]> {
    const claims = this.#claimsOf(this.#first);
    return Promise.all(
      names.map((name): Promise<ClaimOutcome> => {
        const held = this.#held.get(name);
        if (held !== undefined) return Promise.resolve({ kind: "held", epoch: held.epoch });
        return claims.claim(name, this.#options.paths.find(name).key, isForced);
      }),
    );
  }

  /** The held instance, or undefined. */
  get(name: string): HeldInstance | undefined {
    return this.#held.get(name);
  }

  /** True if the name exists in its store. */
  async exists(name: string): Promise<boolean> {
    if (this.#held.has(name)) return true;
    const [found] = await this.#readRows([name]);
    return found !== undefined;
  }

  async release(names: readonly string[], to: NodeInc | null = null): Promise<void> {
    const instances = names.flatMap((name) => this.#held.get(name) ?? []);
    const open = instances.find((instance) => instance.open !== null);
    if (open !== undefined) throw new Error(`the instance ${open.name} is open and cannot be released`);
    const byHistory = Map.groupBy(instances, ({ history }) => history);
    for (const [history, owned] of byHistory) {
      // Before the statement: from now on this node does not take it for its own, whatever the outcome is.
      for (const { name } of owned) this.#forget(name, null);
      await history.release(owned, to).catch((error: unknown) => {
        throw toClientError(error);
      });
      for (const { name } of owned) if (to !== null) this.learn(name, to);
    }
  }

  confirm(name: string): Promise<void> | null {
    const instance = this.#held.get(name);
    if (instance === undefined) return Promise.reject(new InstanceFencedError("dropped"));
    return this.#options.nodes.isLeaseFresh ? null : this.#confirm(instance);
  }

  onFenced(listener: (fence: Fence) => void): void {
    this.#listeners.push(listener);
  }

  drop(name: string): void {
    const instance = this.#held.get(name);
    if (instance !== undefined) this.fence(instance, "dropped");
  }

  rejoined(): void {
    this.#known.clear();
    const former = [...this.#held.values()];
    for (const instance of former) this.fence(instance, "rejoined");
    // Not awaited: what the answer is does not matter to the instances, which are claimed anew.
    for (const [history, instances] of Map.groupBy(former, ({ history }) => history))
      void this.#countLost(history, instances);
  }

  /** Never rejects: without an answer the loss, if there was one, is not counted. */
  async #countLost(history: History, instances: readonly HeldInstance[]): Promise<void> {
    for (let i = 0; i < instances.length; i += MAX_COMPARED) {
      const some = instances.slice(i, i + MAX_COMPARED);
      const lost = await retry(() => history.countLost(some), LOSS_RETRY).catch(() => 0);
      this.#options.figures.lostRecords += lost;
    }
  }

  /** The instance is not this node's any more. */
  fence(instance: HeldInstance, reason: FenceReason, cause?: unknown): void {
    instance.fence(reason, cause);
    if (this.#held.get(instance.name) !== instance) return;
    this.#forget(instance.name, null);
    const { name, epoch } = instance;
    for (const listener of this.#listeners) listener({ name, epoch, reason });
  }

  /** The instance was destroyed by this node. */
  destroyed(name: string): void {
    this.#forget(name, null);
  }

  /** Those of a store, open or not. */
  heldIn(history: History): HeldInstance[] {
    return [...this.#held.values()].filter((one) => one.history === history);
  }

  #forget(name: string, node: NodeInc | null): void {
    this.#held.delete(name);
    this.learn(name, node);
  }

  async #confirm(instance: HeldInstance): Promise<void> {
    const { history, id } = instance;
    const states = await history.readStates([id]).catch((error: unknown) => {
      throw toClientError(error);
    });
    if (!instance.isOwnedIn(states.get(id))) this.fence(instance, "taken");
    instance.requireHeld();
  }

  get #first(): Store {
    const [first] = this.#options.stores;
    if (first === undefined) throw new Error("there is no store");
    return first;
  }

  /** The store of a new instance. Existing ones stay where they are. */
  #storeFor(key: Buffer): Store {
    const { stores } = this.#options;
    return stores[key.readUInt32BE(0) % stores.length] ?? this.#first;
  }

  #findStore(number: number): Store {
    const store = this.#options.stores.find((one) => one.number === number);
    if (store === undefined) throw unknownStore(number);
    return store;
  }

  /** The first store has only the number of the store of an instance. */
  #passOn(claim: InstanceClaim, number: number): void {
    try {
      this.#claimsOf(this.#findStore(number)).add(claim);
    } catch (error) {
      claim.done.reject(error);
    }
  }

  #claimsOf(store: Store): StoreClaims {
    const claims = this.#claims.get(store);
    if (claims === undefined) throw new Error("the store is unknown");
    return claims;
  }

  async #read(names: readonly string[]): Promise<void> {
    for (const { name, owner } of await this.#readRows(names)) this.#known.set(name, { node: owner });
  }

  async #readRows(names: readonly string[]): Promise<{ name: string; owner: NodeInc | null }[]> {
    const { paths } = this.#options;
    const byKey = new Map(names.map((name) => [paths.find(name).id, name]));
    try {
      const rows = await this.#first.history.find(names.map((name) => paths.find(name).key));
      const there = rows.filter(({ store }) => store === 0);
      const pointers = rows.filter(({ store }) => store !== 0);
      for (const [number, ofStore] of Map.groupBy(pointers, ({ store }) => store)) {
        const keys = ofStore.map(({ key }) => key);
        there.push(...(await this.#findStore(number).history.find(keys)));
      }
      return there.map(({ key, owner }) => ({ name: byKey.get(key.toString("hex")) ?? "", owner }));
    } catch (error) {
      throw toClientError(error);
    }
  }
}

function unknownStore(number: number): Error {
  return new Error(`an instance is in store ${number}, which is not among the configured stores`);
}
