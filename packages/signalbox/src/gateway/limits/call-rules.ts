/**
 * The rules of one call, and what the call holds under them: reserves before the call goes upstream, and settles when its usage is known.
 * The invariants are those of limits.ts.
 */
import type { Clock } from "../../core/clock.ts";
import type { Books } from "./books.ts";
import {
  type LimitKind,
  type LimitRule,
  type Metadata,
  MICRO,
  type Need,
  partitionOf,
  type Remaining,
  type StepDemand,
} from "./limit-rule.ts";
import type { Claim, ClaimPart } from "./claim.ts";
import { type Admission, Delay } from "../step/delay.ts";
import { refuse, type Refusal } from "./limit-refusal.ts";
import type { NamedBucket, RuleBuckets } from "./rule-buckets.ts";
import type { ShareExchange } from "./share-exchange.ts";
import type { SharedBucket } from "./shared-bucket.ts";
import type { SlotAmount } from "./spend-journal.ts";
import { amountOf, toMicro } from "./step-amounts.ts";

/** What a step has used. */
export interface Charge {
  readonly provider: string;
  /** One, or several if the request may mean several: the rules of all of them apply. */
  readonly models: readonly string[];
  /** Dollars. */
  readonly cost: number;
  readonly tokens: number;
}

export interface LimitsParts {
  readonly books: Books;
  /** Present when nodes share the amounts; all buckets are then `SharedBucket`s. */
  readonly shares: ShareExchange | null;
  readonly clock: Clock;
  /** Monotonic; windows of rates follow it, because they do not outlive the process. */
  readonly steadyClock: Clock;
  /** A soft budget was exceeded; called once for each window. */
  readonly onSoftBudget: (rule: LimitRule, used: number) => void;
}

export interface ActiveRule {
  readonly rule: LimitRule;
  readonly buckets: RuleBuckets;
}

/** A budget on the way of a call through a route. It decided when the route was walked, so here it refuses nothing. */
export interface RouteBudget {
  readonly rule: LimitRule;
  readonly bucket: NamedBucket;
}

/** All rules of calls with one gateway and one token. */
export interface RuleSet {
  readonly account: object;
  readonly rules: readonly ActiveRule[];
  /** Whether a rule limits cost or tokens. */
  readonly needsTokens: boolean;
  /** Whether a rule applies to some calls only. */
  readonly hasConditions: boolean;
}

/** Taken by every call, also one that the cache answers. */
const AT_ARRIVAL: ReadonlySet<LimitKind> = new Set(["requests", "parallel"]);
const BEFORE_SENDING: ReadonlySet<LimitKind> = new Set(["cost", "tokens"]);
const NO_BUDGETS: readonly RouteBudget[] = [];
const FOR_AN_ATTEMPT: ReadonlySet<LimitKind> = new Set(["requests"]);

interface Held {
  readonly rule: LimitRule;
  readonly bucket: NamedBucket;
  readonly amount: number;
  /** What the books remember: an amount that may become much larger is not lost money when the process is killed. */
  readonly expected: number;
}

/** The rules of one call, and what it holds under them. */
export class CallRules {
  readonly #parts: LimitsParts;
  readonly #rules: readonly ActiveRule[];
  /** Of the present attempt. */
  #held: Held[] = [];
  /** Its number in the books; 0 when it holds no money. */
  #call = 0;
  /** Until the end of the call: its place among parallel calls, and what attempts hold that run beside the present one or are charged. */
  readonly #kept: Held[] = [];
  readonly #keptCalls: number[] = [];
  /** Rules with conditions that have counted the call. */
  #arrived: Set<LimitRule> | null = null;
  readonly #budgets: readonly RouteBudget[];
  /** What the call waits for; the repeated call takes it. */
  #claim: Claim | null = null;
  #metadata: Metadata | null = null;
  #metadataText: string | null = null;
  readonly needsTokens: boolean;
  readonly hasConditions: boolean;

  constructor(
    parts: LimitsParts,
    { rules, needsTokens, hasConditions }: RuleSet,
    budgets: readonly RouteBudget[] | undefined,
  ) {
    this.#parts = parts;
    this.#rules = rules;
    this.#budgets = budgets ?? NO_BUDGETS;
    this.needsTokens = needsTokens || budgets !== undefined;
    this.hasConditions = hasConditions;
  }

  /** Serialised flat JSON object. */
  setMetadata(text: string | null): void {
    this.#metadataText = text;
  }

  /**
   * Counts the request and the running call; `gateway_rate_limited` when a rule has no room. Of `demand` no amount is used. Called again for
   * steps that become known later; rules that have counted the call do not count it twice.
   */
  arrive(demand: readonly StepDemand[]): Admission {
    return this.#take(AT_ARRIVAL, demand);
  }

  /** Reserves cost and tokens; `gateway_spend_limit` or `gateway_rate_limited` when a rule has no room. */
  reserve(demand: readonly StepDemand[]): Admission {
    return this.#take(BEFORE_SENDING, demand);
  }

  /** Counts one more request upstream, for a retry or a fallback. */
  takeAttempt(provider: string, model: string): Admission {
    return this.#take(FOR_AN_ATTEMPT, [{ provider, model, cost: 0, most: 0, tokens: 0, isBounded: true }]);
  }

  /** Gives back what `reserve` took: another step follows. */
  release(): void {
    for (const held of this.#held) held.bucket.release(held);
    this.#held = [];
    if (this.#call !== 0) this.#parts.books.settled(this.#call, []);
    this.#call = 0;
  }

  /**
   * Keeps what `reserve` took until the call ends: the next attempt must reserve for itself. The returned function undoes that, and gives back what was
   * reserved since.
   */
  keep(): () => void {
    const [held, call] = [this.#held, this.#call];
    this.#kept.push(...held);
    this.#held = [];
    if (call !== 0) this.#keptCalls.push(call);
    this.#call = 0;
    return () => {
      this.release();
      for (const one of held) this.#kept.splice(this.#kept.indexOf(one), 1);
      this.#held = held;
      if (call !== 0) this.#keptCalls.splice(this.#keptCalls.indexOf(call), 1);
      this.#call = call;
    };
  }

  /** True when a rule on money applies to the step. */
  limitsCostOf(step: Pick<StepDemand, "provider" | "model">): boolean {
    return this.#rules.some(
      ({ rule }) => rule.kind === "cost" && !rule.isSoft && this.#partitionOf(rule, step) !== undefined,
    );
  }

  /** Releases what the call holds, and adds what it has used. Must be called once, also after a refusal. */
  settle(charges: readonly Charge[]): void {
    const wall = this.#parts.clock.now();
    const steady = this.#parts.steadyClock.now();
    this.stopWaiting();
    this.keep();
    for (const held of this.#kept) held.bucket.release(held);
    this.#kept.length = 0;
    const settled: SlotAmount[] = [];
    for (const charge of charges) {
      for (const active of this.#rules) this.#charge(active, charge, wall, steady, settled);
      const amount = amountOf("cost", charge);
      if (amount > 0) for (const { bucket } of this.#budgets) addAmount(bucket, amount, wall, settled);
    }
    const [first = 0, ...others] = this.#keptCalls;
    if (first !== 0 || settled.length > 0) this.#parts.books.settled(first, settled);
    for (const call of others) this.#parts.books.settled(call, []);
    this.#keptCalls.length = 0;
  }

  /** What is left of the tightest budget that applies; null when none does. */
  remaining(step: Pick<StepDemand, "provider" | "model">): Remaining | null {
    const now = this.#parts.clock.now();
    let least = Number.POSITIVE_INFINITY;
    let tightest: NamedBucket | null = null;
    for (const { rule, buckets } of this.#rules) {
      if (rule.kind !== "cost" || rule.isSoft) continue;
      const partition = this.#partitionOf(rule, step);
      if (partition === undefined) continue;
      const bucket = buckets.find(partition, now);
      const left = rule.limit - bucket.used(now) - bucket.reserved + this.#unexpectedIn(bucket);
      if (tightest !== null && left >= least) continue;
      least = left;
      tightest = bucket;
    }
    return tightest === null ? null : { amount: Math.max(0, least) / MICRO, resetAt: tightest.resetAt(now) };
  }

  /** What this call has reserved beyond the amount that it is expected to use. */
  #unexpectedIn(bucket: NamedBucket): number {
    let sum = 0;
    for (const held of this.#held) if (held.bucket === bucket) sum += held.amount - held.expected;
    for (const held of this.#kept) if (held.bucket === bucket) sum += held.amount - held.expected;
    return sum;
  }

  /** The call does not repeat what it was told to wait for. */
  stopWaiting(): void {
    this.#claim?.cancel();
    this.#claim = null;
  }

  #take(kinds: ReadonlySet<LimitKind>, demand: readonly StepDemand[]): Admission {
    const { shares } = this.#parts;
    if (shares !== null) return this.#takeShared(shares, kinds, demand);
    const wall = this.#parts.clock.now();
    const steady = this.#parts.steadyClock.now();
    const taken: Held[] = [];
    let refusal: Refusal | null = null;
    for (const active of this.#rules) {
      const { rule, buckets } = active;
      if (!kinds.has(rule.kind) || (kinds === AT_ARRIVAL && this.#arrived?.has(rule) === true)) continue;
      const needed = this.#needOf(rule, demand);
      if (needed === null) continue;
      const now = rule.kind === "cost" ? wall : steady;
      const bucket = buckets.find(needed.partition, now);
      const refused = refuse(rule, bucket, needed, now);
      // Of several exhausted rules, `retry-after` follows the one with the longest wait.
      if (refused !== null && refused.waitMs > (refusal?.waitMs ?? -1)) refusal = refused;
      taken.push({ rule, bucket, amount: needed.amount, expected: needed.expected });
    }
    if (refusal !== null) return refusal.toError(wall - steady);
    if (kinds === BEFORE_SENDING) {
      for (const { rule, bucket } of this.#budgets) {
        const need = this.#needOf(rule, demand);
        if (need !== null) taken.push({ rule, bucket, amount: need.amount, expected: need.expected });
      }
    }
    this.#hold(taken, wall, steady);
    if (kinds === AT_ARRIVAL) this.#noteArrival(taken);
    return null;
  }

  #noteArrival(taken: readonly { readonly rule: LimitRule }[]): void {
    if (!this.hasConditions) return;
    this.#arrived ??= new Set();
    for (const { rule } of taken) this.#arrived.add(rule);
  }

  /** As `#take`, with amounts that nodes share: the call waits if this node has not taken enough ahead. */
  #takeShared(
    shares: ShareExchange,
    kinds: ReadonlySet<LimitKind>,
    demand: readonly StepDemand[],
  ): Admission {
    const claim = this.#claim;
    this.#claim = null;
    if (claim !== null) {
      if (claim.state !== "granted") return claim.error ?? claim.refusal?.toError(0) ?? null;
      this.#holdShared(kinds, claim.parts);
      return null;
    }
    const parts = this.#sharedParts(kinds, demand);
    if (shares.tryTake(parts)) {
      this.#holdShared(kinds, parts);
      return null;
    }
    this.#claim = shares.claim(parts);
    return new Delay(this.#claim.ready);
  }

  #sharedParts(kinds: ReadonlySet<LimitKind>, demand: readonly StepDemand[]): ClaimPart[] {
    const now = this.#parts.clock.now();
    const parts: ClaimPart[] = [];
    for (const { rule, buckets } of this.#rules) {
      if (rule.isSoft || !kinds.has(rule.kind)) continue;
      if (kinds === AT_ARRIVAL && this.#arrived?.has(rule) === true) continue;
      const need = this.#needOf(rule, demand);
      if (need === null) continue;
      const bucket = buckets.find(need.partition, now) as SharedBucket;
      parts.push({ rule, bucket, need, isForced: false });
    }
    if (kinds !== BEFORE_SENDING) return parts;
    for (const { rule, bucket } of this.#budgets) {
      const need = this.#needOf(rule, demand);
      const present = bucket.isDropped ? this.#parts.books.open(rule, bucket.name) : bucket;
      if (need !== null) parts.push({ rule, bucket: present as SharedBucket, need, isForced: true });
    }
    return parts;
  }

  /** The amounts are taken: remembers what must be given back. */
  #holdShared(kinds: ReadonlySet<LimitKind>, parts: readonly ClaimPart[]): void {
    for (const { rule, bucket, need } of parts) {
      if (rule.kind === "requests") continue;
      const held = { rule, bucket, amount: need.amount, expected: need.expected };
      (rule.kind === "parallel" ? this.#kept : this.#held).push(held);
    }
    if (kinds === AT_ARRIVAL) this.#noteArrival(parts);
  }

  #hold(taken: readonly Held[], wall: number, steady: number): void {
    const money: SlotAmount[] = [];
    for (const held of taken) {
      const { rule, bucket, amount, expected } = held;
      const { kind, isSoft } = rule;
      // A request has happened when it arrives: there is nothing to settle.
      if (kind === "requests") bucket.add(bucket.window.slotOf(steady), 1);
      else if (!isSoft) {
        bucket.reserve(amount);
        (kind === "parallel" ? this.#kept : this.#held).push(held);
        if (kind === "cost") {
          const slot = bucket.window.slotOf(wall);
          money.push({ bucket, slot, end: bucket.window.endOf(slot), amount: expected });
        }
      }
    }
    if (money.length > 0) this.#call = this.#parts.books.reserved(money);
  }

  /** The largest amount among the steps that the rule applies to; null when it applies to none. */
  #needOf(rule: LimitRule, demand: readonly StepDemand[]): Need | null {
    let need: Need | null = null;
    for (const step of demand) {
      const partition = this.#partitionOf(rule, step);
      if (partition === undefined) continue;
      const expected = amountOf(rule.kind, step);
      const amount = rule.kind === "cost" ? toMicro(step.most) : expected;
      const isBounded = rule.kind === "requests" || rule.kind === "parallel" || step.isBounded;
      const runsAlone = rule.kind === "cost" && step.isPartial === true;
      need =
        need === null
          ? { partition, amount, expected, isBounded, runsAlone, step }
          : {
              partition,
              amount: Math.max(amount, need.amount),
              expected: Math.max(expected, need.expected),
              isBounded: isBounded && need.isBounded,
              runsAlone: runsAlone || need.runsAlone === true,
              step: amount > need.amount ? step : need.step,
            };
    }
    return need;
  }

  #charge(
    { rule, buckets }: ActiveRule,
    charge: Charge,
    wall: number,
    steady: number,
    settled: SlotAmount[],
  ): void {
    if (rule.kind !== "cost" && rule.kind !== "tokens") return;
    const amount = amountOf(rule.kind, charge);
    const partition = amount === 0 ? undefined : this.#partitionOfCharge(rule, charge);
    if (partition === undefined) return;
    const now = rule.kind === "cost" ? wall : steady;
    const bucket = buckets.find(partition, now);
    if (rule.isSoft && this.#parts.shares !== null) {
      (bucket as SharedBucket).watch(rule.limit, (used) => this.#parts.onSoftBudget(rule, used));
    } else if (rule.isSoft) {
      const before = bucket.used(now);
      if (before < rule.limit && before + amount >= rule.limit)
        this.#parts.onSoftBudget(rule, before + amount);
    }
    addAmount(bucket, amount, now, settled);
  }

  #partitionOfCharge(rule: LimitRule, { provider, models }: Charge): string | null | undefined {
    if (rule.conditions === null) return null;
    for (const model of models) {
      const partition = this.#partitionOf(rule, { provider, model });
      if (partition !== undefined) return partition;
    }
    return undefined;
  }

  #partitionOf(
    rule: LimitRule,
    { provider, model }: Pick<StepDemand, "provider" | "model">,
  ): string | null | undefined {
    return rule.conditions === null ? null : partitionOf(rule, provider, model, () => this.#readMetadata());
  }

  #readMetadata(): Metadata {
    this.#metadata ??= this.#metadataText === null ? {} : (JSON.parse(this.#metadataText) as Metadata);
    return this.#metadata;
  }
}

function addAmount(bucket: NamedBucket, amount: number, now: number, settled: SlotAmount[]): void {
  const slot = bucket.window.slotOf(now);
  bucket.add(slot, amount);
  if (bucket.isDurable) settled.push({ bucket, slot, end: bucket.window.endOf(slot), amount });
}
