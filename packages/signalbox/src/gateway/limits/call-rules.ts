/**
 * The rules of one call: which amounts it needs of the ledger, and what it is charged with. Holds nothing: what was taken are grants, which belong to
 * the account of the call or of the session. The invariants are those of limits.ts.
 */
import type { Charge, Grant, Need } from "./grant.ts";
import type { Ledger, Taken } from "./ledger.ts";
import {
  type LimitKind,
  type LimitRule,
  type Metadata,
  MICRO,
  partitionOf,
  type Remaining,
  type StepDemand,
} from "./limit-rule.ts";
import type { NamedBucket, RuleBuckets } from "./rule-buckets.ts";
import { amountOf, toMicro } from "./step-amounts.ts";

/** What a step has used. */
export interface StepCharge {
  readonly provider: string;
  /** One, or several if the request may mean several: the rules of all of them apply. */
  readonly models: readonly string[];
  /** Dollars. */
  readonly cost: number;
  readonly tokens: number;
}

export interface ActiveRule {
  readonly rule: LimitRule;
  readonly buckets: RuleBuckets;
}

/** A budget on the way of a call through a route. It decided when the route was walked, so here it refuses nothing. */
export interface RouteBudget extends ActiveRule {
  readonly partition: string | null;
}

/** All rules of calls with one gateway and one token. */
export interface RuleSet {
  readonly account: object;
  readonly rules: readonly ActiveRule[];
  /** Taken by every call, also one that the cache answers. */
  readonly atArrival: readonly ActiveRule[];
  /** Taken by every step that is sent. */
  readonly beforeSending: readonly ActiveRule[];
  /** Taken by every further attempt. */
  readonly forAnAttempt: readonly ActiveRule[];
  /** Whether a rule limits cost or tokens. */
  readonly needsTokens: boolean;
  /** Whether a rule on requests or parallel calls applies to some calls only. */
  readonly hasConditions: boolean;
}

/** Sorts the rules once, for all their calls. Soft rules are not taken: they are charged. */
export function toRuleSet(account: object, rules: readonly ActiveRule[]): RuleSet {
  const taken = (...kinds: readonly LimitKind[]) =>
    rules.filter(({ rule }) => !rule.isSoft && kinds.includes(rule.kind));
  return {
    account,
    rules,
    atArrival: taken("requests", "parallel"),
    beforeSending: taken("cost", "tokens"),
    forAnAttempt: taken("requests"),
    needsTokens: rules.some(({ rule }) => rule.kind === "cost" || rule.kind === "tokens"),
    hasConditions: taken("requests", "parallel").some(({ rule }) => rule.conditions !== null),
  };
}

const NO_BUDGETS: readonly RouteBudget[] = [];
const NO_GRANTS: readonly Grant[] = [];

export class CallRules {
  readonly #ledger: Ledger;
  readonly #set: RuleSet;
  readonly #budgets: readonly RouteBudget[];
  #metadata: Metadata | null = null;
  #metadataText: string | null = null;
  readonly needsTokens: boolean;
  readonly hasConditions: boolean;
  /** False: what the call costs counts, the call itself does not. */
  #countsCalls = true;

  constructor(ledger: Ledger, set: RuleSet, budgets: readonly RouteBudget[] | undefined) {
    this.#ledger = ledger;
    this.#set = set;
    this.#budgets = budgets ?? NO_BUDGETS;
    this.needsTokens = set.needsTokens || budgets !== undefined;
    this.hasConditions = set.hasConditions;
  }

  /** The call is a part of another one, which was counted. */
  leaveUncounted(): void {
    this.#countsCalls = false;
  }

  /** Serialised flat JSON object. */
  setMetadata(text: string | null): void {
    this.#metadataText = text;
  }

  /**
   * Counts the request and the running call; `gateway_rate_limited` when a rule has no room. Of `demand` no amount is used. `isNow`: the call cannot
   * wait. For steps that become known later, `earlier` is what the call has taken: rules that have counted the call do not count it twice.
   */
  arrive(
    demand: readonly StepDemand[],
    isNow = false,
    earlier: readonly Grant[] = NO_GRANTS,
  ): Taken | Promise<Taken> {
    return this.#take(this.#needsOf(this.#set.atArrival, demand, earlier), isNow);
  }

  /**
   * Takes cost and tokens; `gateway_spend_limit` or `gateway_rate_limited` when a rule has no room. `isWrittenLater`: the step is sent when
   * `whenWritten` calls back.
   */
  reserve(demand: readonly StepDemand[], isNow = false, isWrittenLater = false): Taken | Promise<Taken> {
    const needs = this.#needsOf(this.#set.beforeSending, demand, NO_GRANTS);
    for (const budget of this.#budgets) {
      const need = this.#needOf(budget, demand, budget);
      if (need !== null) needs.push(need);
    }
    return this.#take(needs, isNow, isWrittenLater);
  }

  whenWritten(task: () => void): void {
    this.#ledger.whenWritten(task);
  }

  /** Counts one more request upstream, for a retry or a fallback. There is nothing to give back. */
  takeAttempt(provider: string, model: string, isNow = false): Taken | Promise<Taken> {
    const demand = [{ provider, model, cost: 0, most: 0, tokens: 0, isBounded: true }];
    return this.#take(this.#needsOf(this.#set.forAnAttempt, demand, NO_GRANTS), isNow);
  }

  #take(needs: readonly Need[], isNow: boolean, isWrittenLater = false): Taken | Promise<Taken> {
    return isNow ? this.#ledger.takeNow(needs) : this.#ledger.take(needs, isWrittenLater);
  }

  /** Settles the grant with what the call has used; null if the call has reserved nothing. */
  settle(grant: Grant | null, used: readonly StepCharge[]): void {
    const charges: Charge[] = [];
    for (const charge of used) {
      for (const active of this.#set.rules) this.#addCharge(active, charge, charges);
      const amount = amountOf("cost", charge);
      if (amount === 0) continue;
      for (const { rule, buckets, partition } of this.#budgets)
        charges.push({ rule, bucket: buckets.find(partition), amount });
    }
    if (grant !== null) grant.settle(charges);
    else this.#ledger.charge(charges);
  }

  /** True when a rule on money applies to the step. */
  limitsCostOf(step: Pick<StepDemand, "provider" | "model">): boolean {
    return this.#set.rules.some(
      ({ rule }) => rule.kind === "cost" && !rule.isSoft && this.#partitionOf(rule, step) !== undefined,
    );
  }

  /** What is left of the tightest budget that applies, for a call that holds `grants`; null when none applies. */
  remaining(step: Pick<StepDemand, "provider" | "model">, grants: readonly Grant[]): Remaining | null {
    const now = this.#ledger.now("cost");
    let least = Number.POSITIVE_INFINITY;
    let tightest: NamedBucket | null = null;
    for (const { rule, buckets } of this.#set.rules) {
      if (rule.kind !== "cost" || rule.isSoft) continue;
      const partition = this.#partitionOf(rule, step);
      if (partition === undefined) continue;
      const bucket = buckets.find(partition);
      const left = rule.limit - bucket.used(now) - bucket.reserved + unexpectedIn(bucket, grants);
      if (tightest !== null && left >= least) continue;
      least = left;
      tightest = bucket;
    }
    return tightest === null ? null : { amount: Math.max(0, least) / MICRO, resetAt: tightest.resetAt(now) };
  }

  #needsOf(rules: readonly ActiveRule[], demand: readonly StepDemand[], earlier: readonly Grant[]): Need[] {
    const needs: Need[] = [];
    if (!this.#countsCalls && rules !== this.#set.beforeSending) return needs;
    for (const active of rules) {
      if (isCountedIn(earlier, active.rule)) continue;
      const need = this.#needOf(active, demand, null);
      if (need !== null) needs.push(need);
    }
    return needs;
  }

  /** The largest amount among the steps that the rule applies to; null when it applies to none. `budget`: the rule is that of a route. */
  #needOf(
    { rule, buckets }: ActiveRule,
    demand: readonly StepDemand[],
    budget: RouteBudget | null,
  ): Need | null {
    let partition: string | null | undefined;
    let step: StepDemand | null = null;
    let amount = 0;
    let expected = 0;
    let isBounded = true;
    let runsAlone = false;
    for (const one of demand) {
      const found = this.#partitionOf(rule, one);
      if (found === undefined) continue;
      const likely = amountOf(rule.kind, one);
      const most = rule.kind === "cost" ? toMicro(one.most) : likely;
      if (step === null || most > amount) step = one;
      partition = found;
      amount = Math.max(most, amount);
      expected = Math.max(likely, expected);
      isBounded &&= rule.kind === "requests" || rule.kind === "parallel" || one.isBounded;
      runsAlone ||= rule.kind === "cost" && one.isPartial === true;
    }
    if (step === null || partition === undefined) return null;
    const bucket = buckets.find(budget === null ? partition : budget.partition);
    return { rule, bucket, amount, expected, isBounded, runsAlone, isForced: budget !== null, step };
  }

  #addCharge({ rule, buckets }: ActiveRule, charge: StepCharge, charges: Charge[]): void {
    if (rule.kind !== "cost" && rule.kind !== "tokens") return;
    const amount = amountOf(rule.kind, charge);
    const partition = amount === 0 ? undefined : this.#partitionOfCharge(rule, charge);
    if (partition === undefined) return;
    charges.push({ rule, bucket: buckets.find(partition), amount });
  }

  #partitionOfCharge(rule: LimitRule, { provider, models }: StepCharge): string | null | undefined {
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

function isCountedIn(grants: readonly Grant[], rule: LimitRule): boolean {
  for (const { needs } of grants) for (const need of needs) if (need.rule === rule) return true;
  return false;
}

/** What the call has reserved beyond the amount that it is expected to use. */
function unexpectedIn(bucket: NamedBucket, grants: readonly Grant[]): number {
  let sum = 0;
  for (const { needs } of grants)
    for (const need of needs) if (need.bucket === bucket) sum += need.amount - need.expected;
  return sum;
}
