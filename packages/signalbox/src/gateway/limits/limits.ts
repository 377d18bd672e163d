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
import type { Token, TokenPolicy } from "../../accounts/index.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { SpendRule } from "../settings/gateway-settings.ts";
import { type BudgetState, toBudgetState } from "./budget-state.ts";
import { type ActiveRule, CallRules, type RouteBudget, type RuleSet, toRuleSet } from "./call-rules.ts";
import type { Ledger } from "./ledger.ts";
import { type LimitOwner, type LimitRule, toLimitRules, toRateRule, toTokenRules } from "./limit-rule.ts";

const NO_RULES: readonly ActiveRule[] = [];
/** In the place of settings that are absent. */
const NO_SETTINGS: readonly SpendRule[] = [];
/** Partitions of one rule in a listing. */
const MAX_SHOWN_BUCKETS = 100;

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
  stateOfRules(owner: LimitOwner, rules: readonly SpendRule[]): Promise<BudgetState[]> {
    return this.#stateOf(owner, toLimitRules(owner, "", rules));
  }

  stateOfToken(owner: LimitOwner, policy: TokenPolicy): Promise<BudgetState[]> {
    return this.#stateOf(owner, toTokenRules(owner, policy));
  }

  async #stateOf(owner: LimitOwner, rules: readonly LimitRule[]): Promise<BudgetState[]> {
    await this.#ledger.refresh(owner, (kind, name) => {
      const rule = rules.find((one) => one.kind === kind && isBucketOf(one, name));
      return rule === undefined ? null : this.#ledger.bucketsOf(rule).named(name);
    });
    const wall = this.#ledger.now("cost");
    return rules.flatMap((rule) => {
      const now = this.#ledger.now(rule.kind);
      const buckets = this.#ledger.bucketsOf(rule);
      const isPartitioned = rule.conditions?.metadata.some(({ values }) => values === null) === true;
      const shown = isPartitioned ? buckets.first(MAX_SHOWN_BUCKETS) : [buckets.find(null)];
      return shown.map((bucket) => toBudgetState(rule, bucket, now, wall - now));
    });
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

function isBucketOf({ id }: LimitRule, name: string): boolean {
  return name === id || name.startsWith(`${id} `);
}
