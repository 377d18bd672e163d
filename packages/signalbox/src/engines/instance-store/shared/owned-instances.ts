/**
 * The instances that this node owns, and what it knows of the owners of others. `ownership.ts` has the interface and the invariants.
 *
 * Claims that arrive together are one transaction for each store. A claim that loses a race is tried again from the beginning: the row is read
 * anew, and the winner may be a living node.
 */
import { LRUCache } from "lru-cache";
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { fullJitterDelay } from "../../../core/retry.ts";
import type { InstancePaths } from "../instance-path.ts";
import { HeldInstance } from "./held-instance.ts";
import { CLAIM_BYTES, type Claimed, type History, type InstanceRow } from "./history.ts";
import {
  type ClaimOutcome,
  type Fence,
  type FenceReason,
  InstanceFencedError,
  type InstancePlacement,
  type NodeInc,
  type Nodes,
  type Ownership,
  type TakeOver,
} from "./ownership.ts";
import type { Figures } from "./figures.ts";
import { RecentTakeOvers } from "./recent-take-overs.ts";
import { markOf } from "./record.ts";
import { KINDS } from "./statements.ts";
import { toClientError } from "./unavailable.ts";

/** Instances in one transaction. */
const MAX_GROUP = 64;
const MAX_ATTEMPTS = 10;
const RETRY = { baseDelayMs: 5, maxDelayMs: 200 };
/** Owners of instances elsewhere; about 100 bytes each. */
const MAX_KNOWN = 100_000;

export interface Store {
  readonly history: History;
  /** In the first store's table; 0 for the first store itself. */
  readonly number: number;
}

export interface OwnedInstancesOptions {
  /** The first one says where each instance is. */
  readonly stores: readonly Store[];
  readonly nodes: Nodes;
  readonly paths: Pick<InstancePaths, "find">;
  /** The version of the base schema. */
  readonly format: number;
  readonly figures: Figures;
}

interface WaitingClaim {
  readonly name: string;
  readonly key: Buffer;
  isForced: boolean;
  readonly done: PromiseWithResolvers<ClaimOutcome>;
}

interface Located {
  readonly claim: WaitingClaim;
  readonly row: InstanceRow;
  readonly store: Store;
  /** Identifies the claim, if the row was created. */
  readonly mark: number;
}

export class OwnedInstances implements Ownership {
  readonly #options: OwnedInstancesOptions;
  readonly #held = new Map<string, HeldInstance>();
  readonly #known = new LRUCache<string, { readonly node: NodeInc | null }>({ max: MAX_KNOWN });
  readonly #listeners: ((fence: Fence) => void)[] = [];
  #waiting = new Map<string, WaitingClaim>();
  #isClaiming = false;
  readonly #takeOvers = new RecentTakeOvers();

  constructor(options: OwnedInstancesOptions) {
    this.#options = options;
  }

  get recentTakeOvers(): readonly TakeOver[] {
    return this.#takeOvers.list;
  }

  get figures(): Figures {
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
    return Promise.all(names.map((name) => this.#claimOne(name, isForced)));
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
    for (const instance of this.#held.values()) this.fence(instance, "rejoined");
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

  openInstances(history: History): HeldInstance[] {
    return [...this.#held.values()].filter((one) => one.open !== null && one.history === history);
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

  #claimOne(name: string, isForced: boolean): Promise<ClaimOutcome> {
    const held = this.#held.get(name);
    if (held !== undefined) return Promise.resolve({ kind: "held", epoch: held.epoch });
    let waiting = this.#waiting.get(name);
    if (waiting === undefined) {
      const { key } = this.#options.paths.find(name);
      waiting = { name, key, isForced, done: Promise.withResolvers() };
      this.#waiting.set(name, waiting);
    } else waiting.isForced ||= isForced;
    if (!this.#isClaiming) {
      this.#isClaiming = true;
      // Claims of this iteration of the event loop share a transaction.
      setImmediate(() => void this.#claimWaiting());
    }
    return waiting.done.promise;
  }

  async #claimWaiting(): Promise<void> {
    while (this.#waiting.size > 0) {
      const group = [...this.#waiting.values()].slice(0, MAX_GROUP);
      for (const { name } of group) this.#waiting.delete(name);
      try {
        await this.#claimGroup(group);
      } catch (error) {
        for (const { done } of group) done.reject(toClientError(error));
      }
    }
    this.#isClaiming = false;
  }

  async #claimGroup(group: readonly WaitingClaim[]): Promise<void> {
    let left = group.filter(({ name, done }) => {
      const held = this.#held.get(name);
      if (held !== undefined) done.resolve({ kind: "held", epoch: held.epoch });
      return held === undefined;
    });
    for (let attempt = 1; left.length > 0; attempt++) {
      if (attempt > MAX_ATTEMPTS) throw new Error("other nodes claim the same instances all the time");
      if (attempt > 1) await sleep(fullJitterDelay(attempt, RETRY));
      const located = await this.#locate(left);
      const living = await this.#readLiving(located);
      const claimable = located.filter((one) => !this.#settle(one, living));
      const lost: WaitingClaim[] = [];
      for (const [store, ofStore] of Map.groupBy(claimable, (one) => one.store)) {
        // After a lost race each one is claimed alone, so that it delays no other.
        const batches = attempt === 1 ? [ofStore] : ofStore.map((one) => [one]);
        for (const batch of batches)
          if (!(await this.#takeOver(store, batch))) lost.push(...batch.map(({ claim }) => claim));
      }
      left = lost;
    }
  }

  /** Finds the rows, and creates those that do not exist. */
  async #locate(claims: readonly WaitingClaim[]): Promise<Located[]> {
    const { stores } = this.#options;
    const [first] = stores;
    if (first === undefined) throw new Error("there is no store");
    const located = await this.#locateIn(first, claims, (key) => this.#storeFor(key).number);
    const result = located.filter(({ row }) => row.store === 0);
    const elsewhere = located.filter(({ row }) => row.store !== 0);
    for (const [number, ofStore] of Map.groupBy(elsewhere, ({ row }) => row.store)) {
      const store = this.#findStore(number);
      if (store === undefined) {
        for (const { claim } of ofStore) claim.done.reject(unknownStore(number));
        continue;
      }
      result.push(
        ...(await this.#locateIn(
          store,
          ofStore.map(({ claim }) => claim),
          () => 0,
        )),
      );
    }
    return result;
  }

  async #locateIn(
    store: Store,
    claims: readonly WaitingClaim[],
    numberFor: (key: Buffer) => number,
  ): Promise<Located[]> {
    const { nodes, format } = this.#options;
    const keys = claims.map(({ key }) => key);
    const data = randomBytes(CLAIM_BYTES);
    const rows = await store.history.locate(keys, keys.map(numberFor), nodes.self, format, data);
    const byKey = new Map(rows.map((row) => [row.key.toString("hex"), row]));
    return claims.map((claim) => {
      const row = byKey.get(claim.key.toString("hex"));
      if (row === undefined) throw new Error("PostgreSQL returned no row of an instance");
      return { claim, row, store, mark: markOf(KINDS.claim, data) };
    });
  }

  /** The store of a new instance. Existing ones stay where they are. */
  #storeFor(key: Buffer): Store {
    const { stores } = this.#options;
    const store = stores[key.readUInt32BE(0) % stores.length];
    if (store === undefined) throw new Error("there is no store");
    return store;
  }

  #findStore(number: number): Store | undefined {
    return this.#options.stores.find((one) => one.number === number);
  }

  /** Only if an instance has an owner that may be alive. */
  async #readLiving(located: readonly Located[]): Promise<ReadonlySet<NodeInc>> {
    const { nodes } = this.#options;
    const isNeeded = located.some(({ row }) => row.owner !== null && row.owner !== nodes.self && !row.isMade);
    return isNeeded ? nodes.readLiving() : new Set();
  }

  /** True if no claim is needed, or allowed. */
  #settle({ claim, row, store, mark }: Located, living: ReadonlySet<NodeInc>): boolean {
    const { nodes, format, figures } = this.#options;
    // Otherwise this node was declared dead meanwhile, and the claim belongs to its earlier incarnation.
    if (row.isMade && row.owner === nodes.self) {
      figures.claims += 1;
      this.#hold(claim, store, { ...row, seq: 1, node: nodes.self, mark });
      return true;
    }
    if (row.format > format) {
      const text = `the instance's database has schema ${row.format}, but this release supports versions up to ${format}`;
      claim.done.reject(new Error(text));
      return true;
    }
    const { owner } = row;
    if (owner === null || owner === nodes.self || claim.isForced || !living.has(owner)) return false;
    this.learn(claim.name, owner);
    claim.done.resolve({ kind: "elsewhere", node: owner });
    return true;
  }

  async #takeOver({ history, number }: Store, located: readonly Located[]): Promise<boolean> {
    const { nodes, format, figures } = this.#options;
    const { self } = nodes;
    const data = randomBytes(CLAIM_BYTES);
    const claimed = await history.takeOver(
      self,
      format,
      located.map(({ row }) => row),
      data,
    );
    if (claimed === null) return false;
    // Declared dead meanwhile: the claims belong to the earlier incarnation.
    if (nodes.self !== self) return false;
    const byId = new Map(claimed.map((one) => [one.id, one]));
    for (const { claim, row } of located) {
      const one = byId.get(row.id);
      if (one === undefined) continue;
      figures.claims += 1;
      if (row.owner !== null && row.owner !== self) {
        figures.takeOvers += 1;
        this.#takeOvers.add({ name: claim.name, from: row.owner, at: Date.now() });
      }
      this.#hold(claim, { history, number }, { ...one, node: self, mark: markOf(KINDS.claim, data) });
    }
    return true;
  }

  #hold(
    { name, key, done }: WaitingClaim,
    { history }: Store,
    claimed: Claimed & { node: NodeInc; mark: number },
  ): void {
    const { id, epoch, node, seq, mark, snapSeq, partBytes } = claimed;
    const place = { name, key: key.toString("hex") };
    this.#held.set(
      name,
      new HeldInstance({ ...place, id, epoch, node, claimSeq: seq, mark, snapSeq, partBytes, history }),
    );
    this.#known.delete(name);
    done.resolve({ kind: "held", epoch });
  }

  async #read(names: readonly string[]): Promise<void> {
    for (const { name, owner } of await this.#readRows(names)) this.#known.set(name, { node: owner });
  }

  async #readRows(names: readonly string[]): Promise<{ name: string; owner: NodeInc | null }[]> {
    const { stores, paths } = this.#options;
    const [first] = stores;
    if (first === undefined) throw new Error("there is no store");
    const byKey = new Map(names.map((name) => [paths.find(name).id, name]));
    try {
      const rows = await first.history.find(names.map((name) => paths.find(name).key));
      const there = rows.filter(({ store }) => store === 0);
      const pointers = rows.filter(({ store }) => store !== 0);
      for (const [number, ofStore] of Map.groupBy(pointers, ({ store }) => store)) {
        const store = this.#findStore(number);
        if (store === undefined) throw unknownStore(number);
        there.push(...(await store.history.find(ofStore.map(({ key }) => key))));
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
