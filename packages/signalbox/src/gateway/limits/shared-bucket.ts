/**
 * A bucket whose amounts are in PostgreSQL, as one node sees it: the state that the last statement returned, what this node has taken and not
 * used (`spare`), what its running calls hold, and what it has not reported yet.
 *
 * Invariants:
 * 1. A call takes from `spare` only. The database has counted `spare` as taken before it is here, so whatever happens to this node, calls of all
 *    nodes together do not exceed the limit.
 * 2. `spare` is used in the slot in which the database confirmed it, or within two seconds. After that another node may have counted it as spent
 *    in a slot that has ended. Places of parallel calls are used within two seconds.
 * 3. `charged` is what was used and is in no statement yet. A statement that failed is repeated as it was, so its amounts are counted once.
 */
import type { ReservedAmount } from "./amount-bucket.ts";
import type { Need } from "./grant.ts";
import type { LimitKind, LimitOwner } from "./limit-rule.ts";
import { NamedBucket } from "./rule-buckets.ts";
import type { Window } from "./window.ts";

/** What the database returned of a bucket. */
export interface SharedState {
  readonly used: Readonly<Record<string, number>>;
  readonly heldByOthers: number;
  readonly spareOfOthers: number;
  readonly isTight: boolean;
}

/** Shorter than the time after which a silent node is declared dead. */
const CONFIRMED_MS = 2000;
/** A key that was used in this time keeps some of its limit at the node. */
const ACTIVE_MS = 1000;
/** Demand is measured for this time. */
const DEMAND_MS = 100;
const MIN_MEASURED_MS = 20;
/** The part of a budget that a node takes ahead at most: if the node is killed, it counts as spent. */
const MAX_AHEAD = 0.02;

export class SharedBucket extends NamedBucket {
  readonly kind: LimitKind;
  /** Its row; null when it is not known. */
  row: number | null = null;
  /** Of the rule that was used last, in whole units: an amount fits up to `limit`, something is left below `top`. */
  limit = 0;
  top = 0;
  spare = 0;
  charged = 0;
  /** Claims that wait for this bucket. */
  waiting = 0;
  /** Number of the last statement that answered. */
  answeredBy = 0;
  spareOfOthers = 0;
  /** Little is left, or a call waits for it somewhere: nothing is taken ahead. */
  isTight = false;
  /** The spare amount must go back before anything is taken from it. */
  mustReturn = false;
  /** What the database has of `held`. */
  reportedHeld = 0;
  #soft: { readonly limit: number; readonly onExceeded: (used: number) => void } | null = null;
  #configured: Window;
  #adoptedUntil = Number.NEGATIVE_INFINITY;
  readonly #onChanged: (bucket: SharedBucket) => void;
  #held = 0;
  #expected = 0;
  #heldByOthers = 0;
  #confirmedAt = Number.NEGATIVE_INFINITY;
  #confirmedTime = 0;
  #confirmedSlot = Number.NaN;
  #consumed = 0;
  #demand = 0;
  #largest = 0;
  #measuredAt = performance.now();
  #usedAt = Number.NEGATIVE_INFINITY;

  constructor(
    window: Window,
    owner: LimitOwner,
    name: string,
    kind: LimitKind,
    onChanged: (bucket: SharedBucket) => void,
  ) {
    super(window, owner, name, false);
    this.#configured = window;
    this.kind = kind;
    this.#onChanged = onChanged;
  }

  /** The name in the table. */
  get key(): string {
    return `${this.kind} ${this.name}`;
  }

  get held(): number {
    return this.#held;
  }

  get expected(): number {
    return this.#expected;
  }

  /** By calls of all nodes. */
  override get reserved(): number {
    return this.#heldByOthers + this.#held;
  }

  override isEmpty(now: number): boolean {
    return (
      this.#held === 0 &&
      this.spare === 0 &&
      this.charged === 0 &&
      this.waiting === 0 &&
      this.used(now) === 0 &&
      this.#heldByOthers === 0
    );
  }

  /** The current window of the rule. */
  configure(window: Window): void {
    this.#configured = window;
    this.#useConfigured();
  }

  /** Another node has a newer window. */
  adopt(window: Window, ms: number): void {
    this.window = window;
    this.#adoptedUntil = performance.now() + ms;
  }

  #useConfigured(): void {
    if (this.window !== this.#configured && performance.now() >= this.#adoptedUntil)
      this.window = this.#configured;
  }

  /** A call uses the rule with this limit. */
  useRule(limit: number): void {
    // What was taken under the higher limit may be more than is left.
    if (limit < this.limit) this.mustReturn = true;
    this.limit = Math.floor(limit);
    this.top = Math.ceil(limit);
    this.#useConfigured();
  }

  /** The limit is not enforced: `onExceeded` is called when an amount of this node exceeds it. */
  watch(limit: number, onExceeded: (used: number) => void): void {
    this.#soft = { limit, onExceeded };
  }

  /** The database has counted the amount. Only one of all nodes adds the amount that exceeds the limit. */
  reportExceeded(charge: number, now: number): void {
    if (this.#soft === null || charge === 0) return;
    const used = this.used(now) - this.charged;
    if (used - charge < this.#soft.limit && used >= this.#soft.limit) this.#soft.onExceeded(used);
  }

  /** True when the amount can be taken from what this node has. */
  canTake({ amount, isBounded, runsAlone, isForced }: Need, now: number): boolean {
    // Calls that run alone, and budgets of routes, may exceed a limit; what this node has taken ahead must not be used then.
    const fits = this.used(now) + this.reserved + amount <= this.limit;
    const isAlone = this.reserved === 0 && this.spareOfOthers === 0;
    if (!isForced && ((!fits && isBounded) || (runsAlone && !isAlone))) return false;
    if (amount === 0) return this.answeredBy > 0;
    return this.spare >= amount && !this.mustReturn && this.#isConfirmed(now);
  }

  #isConfirmed(now: number): boolean {
    // Places of parallel calls are not spent but free when another node has declared this one dead.
    if (this.kind !== "parallel" && this.window.slotOf(now) === this.#confirmedSlot) return true;
    return (
      performance.now() - this.#confirmedAt < CONFIRMED_MS &&
      Math.abs(now - this.#confirmedTime) < CONFIRMED_MS
    );
  }

  /** Takes an amount for a call: a request is counted, all other amounts are held until the call ends. */
  take({ amount, expected, isBounded, runsAlone }: Need, now: number): void {
    this.spare -= amount;
    // A call without an output limit, or one that was only partly read, reserves much more than it uses: that is not taken ahead.
    if (isBounded && !runsAlone) {
      this.#consumed += amount;
      this.#largest = Math.max(amount, this.#largest);
    }
    this.#usedAt = performance.now();
    if (this.kind === "requests") this.add(this.window.slotOf(now), amount);
    else {
      this.#held += amount;
      this.#expected += expected;
      this.#onChanged(this);
    }
  }

  override release({ amount, expected }: ReservedAmount): void {
    this.#held -= amount;
    this.#expected -= expected;
    // The next call takes the place. Other amounts go back, because what the call has used is counted separately.
    if (this.kind === "parallel" && this.spare + amount <= this.target) this.spare += amount;
    this.#onChanged(this);
  }

  override add(slot: number, amount: number): void {
    super.add(slot, amount);
    this.charged += amount;
    this.#onChanged(this);
  }

  /** The database has answered. */
  update({ used, heldByOthers, spareOfOthers, isTight }: SharedState, now: number): void {
    this.setSlots(Object.entries(used).map(([slot, amount]) => [Number(slot), amount] as const));
    if (this.charged !== 0) super.add(this.window.slotOf(now), this.charged);
    this.#heldByOthers = heldByOthers;
    this.spareOfOthers = spareOfOthers;
    this.isTight = isTight;
  }

  /** What the node has was counted by the database at this time. */
  confirm(sentAt: number, time: number): void {
    this.#confirmedAt = sentAt;
    this.#confirmedTime = time;
    this.#confirmedSlot = this.window.slotOf(time);
  }

  /** How much the node would like to have ahead, from what calls took lately. Begins a new measurement. */
  measure(): number {
    const now = performance.now();
    const elapsedMs = now - this.#measuredAt;
    this.#measuredAt = now;
    const recent = (this.#consumed * DEMAND_MS) / Math.max(elapsedMs, MIN_MEASURED_MS);
    this.#demand = Math.max(recent, this.#demand * 0.5 ** (elapsedMs / DEMAND_MS));
    this.#consumed = 0;
    if (now - this.#usedAt > ACTIVE_MS) {
      this.#demand = 0;
      this.#largest = 0;
    }
    return this.target;
  }

  get target(): number {
    if (this.isTight) return 0;
    const wanted = Math.ceil(Math.max(this.#demand * 1.5, this.#largest * 2));
    if (this.kind !== "cost" && this.kind !== "tokens") return wanted;
    const most = Math.floor(this.limit * MAX_AHEAD);
    return this.#largest > most ? 0 : Math.min(wanted, most);
  }

  /** The node has a new identity: what it had is counted as spent, and calls that still run release nothing. */
  drop(): void {
    this.isDropped = true;
    this.spare = 0;
    this.row = null;
  }
}
