/**
 * The ledger of one process: buckets in memory. Money is also stored (`spend-store.ts`); all other amounts live as long as the process.
 *
 * Invariant: nothing here waits. Reserving is one synchronous step over all needs, so simultaneous calls cannot exceed a limit together.
 */
import type { Clock } from "../../core/clock.ts";
import { type Charge, Grant, type Need } from "./grant.ts";
import type { Ledger, Taken } from "./ledger.ts";
import { refuse, type Refusal } from "./limit-refusal.ts";
import { type LimitKind, type LimitOwner, type LimitRule, RATE_RULE } from "./limit-rule.ts";
import { OwnerBuckets } from "./owner-buckets.ts";
import { NamedBucket, RuleBuckets } from "./rule-buckets.ts";
import type { SlotAmount } from "./spend-journal.ts";
import type { SpendStore } from "./spend-store.ts";

export interface LocalLedgerParts {
  readonly store: SpendStore;
  readonly clock: Clock;
  /** Monotonic; windows of rates follow it, because they do not outlive the process. */
  readonly steadyClock: Clock;
  /** A soft budget was exceeded; called once for each window. */
  readonly onSoftBudget: (rule: LimitRule, used: number) => void;
}

export class LocalLedger implements Ledger {
  readonly #parts: LocalLedgerParts;
  readonly #buckets = new OwnerBuckets((rule, earlier) => this.#createBuckets(rule, earlier));

  constructor(parts: LocalLedgerParts) {
    this.#parts = parts;
  }

  take(needs: readonly Need[], isWrittenLater = false): Taken {
    const wall = this.#parts.clock.now();
    const steady = this.#parts.steadyClock.now();
    let refusal: Refusal | null = null;
    for (const need of needs) {
      if (need.isForced) continue;
      const refused = refuse(need, need.rule.kind === "cost" ? wall : steady, wall);
      // Of several exhausted rules, `retry-after` follows the one with the longest wait.
      if (refused !== null && refused.waitMs > (refusal?.waitMs ?? -1)) refusal = refused;
    }
    if (refusal !== null) return refusal;
    let money: SlotAmount[] | null = null;
    for (const { rule, bucket, amount, expected } of needs) {
      // A request has happened when it arrives: there is nothing to settle.
      if (rule.kind === "requests") bucket.add(bucket.window.slotOf(steady), amount);
      else bucket.reserve(amount);
      if (rule.kind !== "cost" || expected === 0) continue;
      const slot = bucket.window.slotOf(wall);
      (money ??= []).push({ bucket, slot, end: bucket.window.endOf(slot), amount: expected });
    }
    return new Grant(this, needs, money === null ? 0 : this.#parts.store.reserved(money, isWrittenLater));
  }

  whenWritten(task: () => void): void {
    this.#parts.store.whenWritten(task);
  }

  takeNow(needs: readonly Need[]): Taken {
    return this.take(needs);
  }

  end({ needs, number }: Grant, charges: readonly Charge[]): void {
    for (const need of needs) if (need.rule.kind !== "requests") need.bucket.release(need);
    this.#settle(number, charges);
  }

  charge(charges: readonly Charge[]): void {
    this.#settle(0, charges);
  }

  #settle(number: number, charges: readonly Charge[]): void {
    if (number === 0 && charges.length === 0) return;
    const { store, clock, steadyClock, onSoftBudget } = this.#parts;
    const settled: SlotAmount[] = [];
    const wall = clock.now();
    const steady = steadyClock.now();
    for (const { rule, bucket, amount } of charges) {
      const now = rule.kind === "cost" ? wall : steady;
      const before = rule.isSoft ? bucket.used(now) : rule.limit;
      if (before < rule.limit && before + amount >= rule.limit) onSoftBudget(rule, before + amount);
      const slot = bucket.window.slotOf(now);
      bucket.add(slot, amount);
      if (bucket.isDurable) settled.push({ bucket, slot, end: bucket.window.endOf(slot), amount });
    }
    if (number !== 0 || settled.length > 0) store.settled(number, settled);
  }

  bucketsOf(rule: LimitRule): RuleBuckets {
    return this.#buckets.of(rule);
  }

  #createBuckets(rule: LimitRule, earlier: RuleBuckets | undefined): RuleBuckets {
    const { store } = this.#parts;
    const { window, owner, kind, id } = rule;
    const isDurable = kind === "cost";
    const open = (name: string) => {
      const bucket = new NamedBucket(window, owner, name, isDurable);
      if (isDurable) store.restore(bucket);
      return bucket;
    };
    const stored = isDurable ? store.storedNames(owner, id) : [];
    const buckets = new RuleBuckets(rule, stored, open, () => this.now(kind));
    // A changed rate limit of a gateway starts a new count.
    if (id !== RATE_RULE) earlier?.moveTo(buckets, (...move) => store.moved(...move));
    return buckets;
  }

  now(kind: LimitKind): number {
    return kind === "cost" ? this.#parts.clock.now() : this.#parts.steadyClock.now();
  }

  /** Everything is in memory. */
  refresh(): Promise<void> {
    return Promise.resolve();
  }

  forget(owner: LimitOwner): void {
    this.#buckets.forget(owner);
    this.#parts.store.forget(owner);
  }

  idleOwners(): Promise<readonly LimitOwner[]> {
    return Promise.resolve(this.#parts.store.idleOwners());
  }

  start(): Promise<void> {
    return this.#parts.store.start();
  }

  stop(): Promise<void> {
    return this.#parts.store.stop();
  }
}
