/** Which guardrails apply to a call: those of its gateway, of its token and of the account, all of them. */
import type { GuardrailRule, Token } from "../../accounts/index.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { GatewaySettings } from "../settings/gateway-settings.ts";
import { CallGuard } from "./call-guard.ts";
import { dlpRules } from "./dlp-rules.ts";
import { type OwnedRule, type RuleOwner, RuleSet } from "./rule-set.ts";

type Rules = readonly GuardrailRule[];
const NONE: Rules = [];

export class Guardrails {
  /** By account. */
  readonly accountRules: Map<string, Rules>;
  /** Compiled sets by the settings and lists they consist of: what is changed is another object. */
  readonly #sets = new WeakMap<GatewaySettings, WeakMap<Rules, WeakMap<Rules, RuleSet | null>>>();

  constructor(accountRules: Map<string, Rules>) {
    this.accountRules = accountRules;
  }

  /** Null in the usual case: no rule applies. */
  guardFor(gateway: Gateway, token: Token | null): CallGuard | null {
    const rules = this.rulesFor(gateway, token);
    return rules === null ? null : new CallGuard(rules);
  }

  rulesFor({ settings, accountId }: Gateway, token: Token | null): RuleSet | null {
    const ofToken = token?.policy?.guardrails;
    if (
      settings.guardrail_rules === null &&
      settings.dlp === null &&
      (ofToken === undefined || ofToken.length === 0) &&
      this.accountRules.size === 0
    )
      return null;
    return this.#setFor(settings, ofToken ?? NONE, this.accountRules.get(accountId) ?? NONE);
  }

  #setFor(settings: GatewaySettings, token: Rules, account: Rules): RuleSet | null {
    const byToken = inner(this.#sets, settings, () => new WeakMap<Rules, WeakMap<Rules, RuleSet | null>>());
    const byAccount = inner(byToken, token, () => new WeakMap<Rules, RuleSet | null>());
    return inner(byAccount, account, () => {
      const rules = [
        ...owned("gateway", settings.guardrail_rules ?? NONE),
        ...owned("dlp", settings.dlp === null ? NONE : dlpRules(settings.dlp)),
        ...owned("token", token),
        ...owned("account", account),
      ];
      return rules.length === 0 ? null : new RuleSet(rules);
    });
  }
}

function owned(owner: RuleOwner, rules: Rules): OwnedRule[] {
  return rules.filter(({ enabled }) => enabled).map((rule) => ({ owner, rule }));
}

function inner<Key extends object, Value>(map: WeakMap<Key, Value>, key: Key, create: () => Value): Value {
  let value = map.get(key);
  if (value === undefined) {
    value = create();
    map.set(key, value);
  }
  return value;
}
