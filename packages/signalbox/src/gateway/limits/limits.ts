/**
 * Enforces every limit of a call: those of its account, its gateway and its token, on money, tokens, requests and parallel calls.
 *
 * A call reserves before it goes upstream and settles when its usage is known, so that simultaneous calls cannot together exceed a limit.
 *
 * Invariants:
 * 1. Reserving is one step over all rules that apply: every bucket accepts its amount, or none is changed (`ledger.ts`).
 * 2. A call reserves, under each rule, the largest amount of those of its steps that the rule applies to. Whatever a step has used is then
 *    charged to the rules that apply to that step.
 * 3. A call that sets no limit of its output reserves the longest answer of its model. Such a call may run while no other does, even if that
 *    exceeds what is left, because a small limit would otherwise refuse every call. Only such calls can exceed a limit.
 *    A call whose request was only partly read must fit, and begins only while nothing else is reserved: the rest may name a dearer model.
 *    Attempts that run beside each other, or are charged, each hold their own reservation.
 * 4. A call whose price is unknown does not run under a limit on money, unless the operator has said what to assume (`unknown_price`).
 * See docs/decisions/0112.
 */
import { setImmediate as nextLoop } from "node:timers/promises";
import type { Token, TokenPolicy } from "../../accounts/index.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { SpendRule } from "../settings/gateway-settings.ts";
import { type BudgetState, toBudgetState } from "./budget-state.ts";
import { type ActiveRule, CallRules, type RouteBudget, type RuleSet, toRuleSet } from "./call-rules.ts";
import type { Ledger } from "./ledger.ts";
import { type LimitOwner, type LimitRule, toLimitRules, toRateRule, toTokenRules } from "./limit-rule.ts";
import type { NamedBucket } from "./rule-buckets.ts";

const NO_RULES: readonly ActiveRule[] = [];
/** In the place of settings that are absent. */
const NO_SETTINGS: readonly SpendRule[] = [];
/** Partitions of one rule in a listing. */
const MAX_SHOWN_BUCKETS = 100;
/** Owners whose amounts are read by one statement, and without a pause of the event loop. */
const OWNERS_PER_PIECE = 200;

/** The rules of one account, gateway or token. */
export interface OwnedRules {
  readonly owner: LimitOwner;
  readonly rules: readonly LimitRule[];
}

interface UsedBucket {
  readonly rule: LimitRule;
  readonly bucket: NamedBucket;
  /** By the clock of the bucket. */
  readonly now: number;
}

export class Limits {
  /** By account; kept up to date by the management of limits. */
  readonly accountRules = new Map<string, readonly SpendRule[]>();
  readonly #ledger: Ledger;
  /** Rules are made when their settings are used for the first time, and collected with them. */
  readonly #compiled = new WeakMap<object, readonly ActiveRule[]>();
  /** By gateway, then by token; tokens without a policy share one entry. A changed gateway or token is another object. */
  readonly #sets = new WeakMap<Gateway, WeakMap<object, RuleSet>>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** The rules of a call; null when it has none. `budgets` are those of its route, to which a walk may add more. */
  rulesOf(gateway: Gateway, token: Token | null, budgets?: readonly RouteBudget[]): CallRules | null {
    const account = this.accountRules.get(gateway.accountId) ?? NO_SETTINGS;
    const limited = token === null || token.policy === null ? NO_SETTINGS : token;
    let byToken = this.#sets.get(gateway);
    if (byToken === undefined) this.#sets.set(gateway, (byToken = new WeakMap()));
    let set = byToken.get(limited);
    if (set === undefined || set.account !== account) {
      set = this.#createSet(gateway, token, account);
      byToken.set(limited, set);
    }
    return set.rules.length === 0 && budgets === undefined ? null : new CallRules(this.#ledger, set, budgets);
  }

  #createSet(gateway: Gateway, token: Token | null, account: object): RuleSet {
    const own = gateway.settings.spend_limits;
    const rules: ActiveRule[] = [];
    const ofAccount = this.accountRules.get(gateway.accountId);
    if (ofAccount !== undefined) rules.push(...this.#ofAccount(gateway.accountId, ofAccount));
    const rate = toRateRule(gatewayOwner(gateway), gateway.settings);
    if (rate !== null) rules.push({ rule: rate, buckets: this.#ledger.bucketsOf(rate) });
    if (own?.enabled === true) rules.push(...this.#ofGateway(gateway, own.rules));
    if (token !== null && token.policy !== null) rules.push(...this.#ofToken(token, token.policy));
    return toRuleSet(account, rules);
  }

  /** What of each rule of an account or gateway is used. */
  async stateOfRules(owner: LimitOwner, rules: readonly SpendRule[]): Promise<BudgetState[]> {
    return this.#statesOf(await this.#refresh([{ owner, rules: toLimitRules(owner, "", rules) }]));
  }

  async stateOfToken(owner: LimitOwner, policy: TokenPolicy): Promise<BudgetState[]> {
    return this.#statesOf(await this.#refresh([{ owner, rules: toTokenRules(owner, policy) }]));
  }

  /**
   * Of the rules of many owners of one account, those of which the largest share is used. Rules of parallel calls are left out: they are used
   * up and free again within seconds.
   */
  async mostUsed<Owned extends OwnedRules>(
    all: Iterable<Owned>,
    count: number,
  ): Promise<{ readonly owned: Owned; readonly state: BudgetState }[]> {
    let most: { readonly owned: Owned; readonly used: UsedBucket; readonly share: number }[] = [];
    for (const owners of piecesOf(all)) {
      await this.#refresh(owners);
      for (const owned of owners)
        for (const used of this.#bucketsOf(owned.rules, Number.POSITIVE_INFINITY)) {
          if (used.rule.kind === "parallel") continue;
          const share = (used.bucket.used(used.now) + used.bucket.reserved) / used.rule.limit;
          most.push({ owned, used, share });
        }
      most = most.sort((a, b) => b.share - a.share).slice(0, count);
      // An account may have ten thousand tokens with budgets.
      await nextLoop();
    }
    return most.map(({ owned, used }) => ({ owned, state: this.#toState(used) }));
  }

  /** Reads what other nodes have counted; returns the rules. */
  async #refresh(all: readonly OwnedRules[]): Promise<LimitRule[]> {
    const byOwner = new Map(all.map(({ owner, rules }) => [owner.key, rules]));
    await this.#ledger.refresh(
      all.map(({ owner }) => owner),
      (key, kind, name) => {
        const rule = byOwner.get(key)?.find((one) => one.kind === kind && isBucketOf(one, name));
        return rule === undefined ? null : this.#ledger.bucketsOf(rule).named(name);
      },
    );
    return all.flatMap(({ rules }) => rules);
  }

  #statesOf(rules: readonly LimitRule[]): BudgetState[] {
    return this.#bucketsOf(rules, MAX_SHOWN_BUCKETS).map((used) => this.#toState(used));
  }

  #bucketsOf(rules: readonly LimitRule[], partitions: number): UsedBucket[] {
    return rules.flatMap((rule) => {
      const now = this.#ledger.now(rule.kind);
      const buckets = this.#ledger.bucketsOf(rule);
      const isPartitioned = rule.conditions?.metadata.some(({ values }) => values === null) === true;
      const shown = isPartitioned ? buckets.first(partitions) : [buckets.find(null)];
      return shown.map((bucket) => ({ rule, bucket, now }));
    });
  }

  #toState({ rule, bucket, now }: UsedBucket): BudgetState {
    return toBudgetState(rule, bucket, now, this.#ledger.now("cost") - now);
  }

  #ofAccount(accountId: string, rules: readonly SpendRule[]): readonly ActiveRule[] {
    return this.#activate(rules, () => toLimitRules(accountOwner(accountId), "account ", rules));
  }

  #ofGateway(gateway: Gateway, rules: readonly SpendRule[]): readonly ActiveRule[] {
    return rules.length === 0
      ? NO_RULES
      : this.#activate(rules, () => toLimitRules(gatewayOwner(gateway), "", rules));
  }

  #ofToken(token: Token, policy: NonNullable<Token["policy"]>): readonly ActiveRule[] {
    return this.#activate(policy, () => toTokenRules(tokenOwner(token), policy));
  }

  #activate(settings: object, toRules: () => readonly LimitRule[]): readonly ActiveRule[] {
    const known = this.#compiled.get(settings);
    if (known !== undefined) return known;
    const active = toRules().map((rule) => ({ rule, buckets: this.#ledger.bucketsOf(rule) }));
    this.#compiled.set(settings, active);
    return active;
  }
}

export function accountOwner(accountId: string): LimitOwner {
  return { accountId, key: "account" };
}

export function gatewayOwner({
  accountId,
  id,
  createdAt,
}: Pick<Gateway, "accountId" | "id" | "createdAt">): LimitOwner {
  return { accountId, key: `gateway ${id} ${createdAt}` };
}

export function tokenOwner({ accountId, id }: Pick<Token, "accountId" | "id">): LimitOwner {
  return { accountId, key: `token ${id}` };
}

function* piecesOf<One>(all: Iterable<One>): Generator<One[]> {
  let piece: One[] = [];
  for (const one of all) {
    piece.push(one);
    if (piece.length < OWNERS_PER_PIECE) continue;
    yield piece;
    piece = [];
  }
  if (piece.length > 0) yield piece;
}

function isBucketOf({ id }: LimitRule, name: string): boolean {
  return name === id || name.startsWith(`${id} `);
}
