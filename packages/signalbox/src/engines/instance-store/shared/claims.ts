/**
 * Claims of instances in one store. Claims that arrive together are one transaction.
 *
 * Invariants:
 * 1. A claim that loses a race is tried again from the beginning: the row is read anew, and the winner may be a living node.
 * 2. The first store says where an instance is. Claims of instances elsewhere go on to the store concerned: a store that cannot be reached delays
 *    the claims of its own instances only.
 * 3. If the statement of several claims fails, each one is tried alone, so that one instance does not fail others.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { overloaded } from "../../../core/overload.ts";
import { fullJitterDelay } from "../../../core/retry.ts";
import { isLocked, isStatementError } from "../../postgres-session/index.ts";
import type { OwnershipCounters } from "./ownership-counters.ts";
import { HeldInstance } from "./held-instance.ts";
import { CLAIM_BYTES, type Claimed, type InstanceRow, type Store } from "./history.ts";
import type { NodeInc } from "../../../core/node-inc.ts";
import type { ClaimOutcome, Nodes } from "./ownership.ts";
import { markOf } from "./record.ts";
import { KINDS } from "./statements.ts";
import { toClientError } from "./unavailable.ts";

/** Instances in one transaction. */
const MAX_GROUP = 64;
const MAX_ATTEMPTS = 10;
const RETRY = { baseDelayMs: 5, maxDelayMs: 200 };

export interface StoreClaimsOptions {
  readonly store: Store;
  readonly nodes: Nodes;
  /** The version of the base schema. */
  readonly format: number;
  readonly figures: OwnershipCounters;
  /** The held instance, or undefined. */
  readonly find: (name: string) => HeldInstance | undefined;
  readonly onHeld: (instance: HeldInstance) => void;
  readonly onElsewhere: (name: string, node: NodeInc) => void;
  /** The instance was taken from another node. */
  readonly onTakeOver: (name: string, from: NodeInc) => void;
  /** The store of a new instance. */
  readonly storeFor: (key: Buffer) => Store;
  /** The instance is in another store. */
  readonly passOn: (claim: InstanceClaim, store: number) => void;
}

export interface InstanceClaim {
  readonly name: string;
  readonly key: Buffer;
  isForced: boolean;
  readonly done: PromiseWithResolvers<ClaimOutcome>;
}

interface Located {
  readonly claim: InstanceClaim;
  readonly row: InstanceRow;
  /** Identifies the claim, if the row was created. */
  readonly mark: number;
}

export class StoreClaims {
  readonly #options: StoreClaimsOptions;
  /** By name. */
  readonly #waiting = new Map<string, InstanceClaim>();
  #isRunning = false;

  constructor(options: StoreClaimsOptions) {
    this.#options = options;
  }

  claim(name: string, key: Buffer, isForced: boolean): Promise<ClaimOutcome> {
    const waiting = this.#waiting.get(name);
    if (waiting !== undefined) {
      waiting.isForced ||= isForced;
      return waiting.done.promise;
    }
    const claim = { name, key, isForced, done: Promise.withResolvers<ClaimOutcome>() };
    this.add(claim);
    return claim.done.promise;
  }

  add(claim: InstanceClaim): void {
    const waiting = this.#waiting.get(claim.name);
    if (waiting === undefined) this.#waiting.set(claim.name, claim);
    else {
      waiting.isForced ||= claim.isForced;
      claim.done.resolve(waiting.done.promise);
    }
    if (this.#isRunning) return;
    this.#isRunning = true;
    // Claims of this iteration of the event loop share a transaction.
    setImmediate(() => void this.#run());
  }

  async #run(): Promise<void> {
    while (this.#waiting.size > 0) {
      const group = [...this.#waiting.values()].slice(0, MAX_GROUP);
      for (const { name } of group) this.#waiting.delete(name);
      await this.#claimGroup(group);
    }
    this.#isRunning = false;
  }

  /** Never rejects. */
  async #claimGroup(group: readonly InstanceClaim[]): Promise<void> {
    let left = group.filter(({ name, done }) => {
      const held = this.#options.find(name);
      if (held !== undefined) done.resolve({ kind: "held", epoch: held.epoch });
      return held === undefined;
    });
    try {
      for (let attempt = 1; left.length > 0; attempt++) {
        if (attempt > MAX_ATTEMPTS) throw contested();
        if (attempt > 1) await sleep(fullJitterDelay(attempt, RETRY));
        left = await this.#try(left, attempt === 1);
      }
    } catch (error) {
      for (const { done } of left) done.reject(toClientError(error));
    }
  }

  /** Returns the claims that have to be tried again. */
  async #try(claims: readonly InstanceClaim[], isTogether: boolean): Promise<InstanceClaim[]> {
    const { located, missing } = await this.#locate(claims);
    const living = await this.#readLiving(located);
    const claimable = located.filter((one) => !this.#settle(one, living));
    const again = [...missing];
    for (const batch of isTogether ? [claimable] : claimable.map((one) => [one]))
      if (batch.length > 0) again.push(...(await this.#takeOverBatch(batch, isTogether)));
    return again;
  }

  async #takeOverBatch(batch: readonly Located[], isFirst: boolean): Promise<InstanceClaim[]> {
    const claims = batch.map(({ claim }) => claim);
    try {
      return (await this.#takeOver(batch)) ? [] : claims;
    } catch (error) {
      if (isStatementError(error) && batch.length > 1) return claims;
      // The transaction of a node that has stopped ends as soon as the wait for it, after a pause of the server's machine.
      if (isLocked(error) && isFirst) return claims;
      for (const { done } of claims) done.reject(toClientError(error));
      return [];
    }
  }

  /** Finds the rows, and creates those that do not exist. A row that another node creates at the same moment is missing. */
  async #locate(claims: readonly InstanceClaim[]): Promise<{ located: Located[]; missing: InstanceClaim[] }> {
    const { store, nodes, format, storeFor, passOn } = this.#options;
    const keys = claims.map(({ key }) => key);
    const data = randomBytes(CLAIM_BYTES);
    const mark = markOf(KINDS.claim, data);
    // A store other than the first has only its own instances.
    const numbers = keys.map((key) => (store.number === 0 ? storeFor(key).number : 0));
    const rows = await store.history.locate(keys, numbers, nodes.self, format, data);
    const byKey = new Map(rows.map((row) => [row.key.toString("hex"), row]));
    const located: Located[] = [];
    const missing: InstanceClaim[] = [];
    for (const claim of claims) {
      const row = byKey.get(claim.key.toString("hex"));
      if (row === undefined) missing.push(claim);
      else if (row.store === 0) located.push({ claim, row, mark });
      else passOn(claim, row.store);
    }
    return { located, missing };
  }

  /** Only if an instance has an owner that may be alive. */
  async #readLiving(located: readonly Located[]): Promise<ReadonlySet<NodeInc>> {
    const { nodes } = this.#options;
    const isNeeded = located.some(({ row }) => row.owner !== null && row.owner !== nodes.self && !row.isMade);
    return isNeeded ? nodes.readLiving() : new Set();
  }

  /** True if no claim is needed, or allowed. */
  #settle({ claim, row, mark }: Located, living: ReadonlySet<NodeInc>): boolean {
    const { nodes, format, figures, onElsewhere } = this.#options;
    // Otherwise this node was declared dead meanwhile, and the claim belongs to its earlier incarnation.
    if (row.isMade && row.owner === nodes.self) {
      figures.claims += 1;
      this.#hold(claim, { ...row, seq: 1, node: nodes.self, mark });
      return true;
    }
    if (row.format > format) {
      const text = `the instance's database has schema ${row.format}, but this release supports versions up to ${format}`;
      claim.done.reject(new Error(text));
      return true;
    }
    const { owner } = row;
    if (owner === null || owner === nodes.self || claim.isForced || !living.has(owner)) return false;
    onElsewhere(claim.name, owner);
    claim.done.resolve({ kind: "elsewhere", node: owner });
    return true;
  }

  /** False if another node was faster. */
  async #takeOver(located: readonly Located[]): Promise<boolean> {
    const { store, nodes, format, figures, onTakeOver } = this.#options;
    const { self } = nodes;
    const data = randomBytes(CLAIM_BYTES);
    const claimed = await store.history.takeOver(
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
        onTakeOver(claim.name, row.owner);
      }
      this.#hold(claim, { ...one, node: self, mark: markOf(KINDS.claim, data) });
    }
    return true;
  }

  #hold({ name, key, done }: InstanceClaim, claimed: Claimed & { node: NodeInc; mark: number }): void {
    const { id, epoch, node, seq, mark, snapSeq, partBytes } = claimed;
    const { history } = this.#options.store;
    const place = { name, key: key.toString("hex") };
    this.#options.onHeld(
      new HeldInstance({ ...place, id, epoch, node, claimSeq: seq, mark, snapSeq, partBytes, history }),
    );
    done.resolve({ kind: "held", epoch });
  }
}

function contested(): Error {
  return overloaded("Other nodes claim the instance all the time", { "retry-after": "1" });
}
