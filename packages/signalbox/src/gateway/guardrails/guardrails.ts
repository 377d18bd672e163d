/** Which guardrails apply to a call: those of its gateway, of its token, of the account and of its own header, all of them. */
import { LRUCache } from "lru-cache";
import { type GuardrailRule, guardrailRules, PII_KINDS, type Token } from "../../accounts/index.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { GatewaySettings } from "../settings/gateway-settings.ts";
import { dlpRules } from "./dlp-rules.ts";
import { categoryRules, type JudgeModels } from "./category-rules.ts";
import { type OwnedRule, type RuleOwner, RuleSet } from "./rule-set.ts";

type Rules = readonly GuardrailRule[];
const NONE: Rules = [];
/** What compiled sets may take in memory, in KB. One that was not used lately is compiled again when it is needed. */
const MAX_COMPILED = 256 * 1024;
/** What a set takes, in KB: its automata learn some thousand states, and have some instructions for each character of a rule. */
const USUAL_SIZE = 2048;
const SIZE_OF_CHARACTER = 0.25;
/** A caller that asks for something else in every call compiles it every time. */
const MAX_ASKED = 100;

type ByRules = WeakMap<Rules, WeakRef<RuleSet> | null>;

export class Guardrails {
  /** By account. */
  readonly accountRules: Map<string, Rules>;
  /** Compiled sets by the settings and lists they consist of: what is changed is another object. */
  readonly #sets = new WeakMap<GatewaySettings, WeakMap<Rules, WeakMap<Rules, ByRules>>>();

  /** By their fingerprints: tokens with the same rules share them. There may be a set for each token. */
  readonly #compiled = new LRUCache<string, RuleSet>({
    maxSize: MAX_COMPILED,
    sizeCalculation: ({ length }) => Math.ceil(USUAL_SIZE + SIZE_OF_CHARACTER * length),
  });

  /** By the text of a header: calls that ask for the same share them. */
  readonly #asked = new Map<string, Rules>();

  readonly #models: JudgeModels;

  /** `models` judge for the setting `guardrails`. */
  constructor(accountRules: Map<string, Rules>, models: JudgeModels) {
    this.accountRules = accountRules;
    this.#models = models;
  }

  /** Compiles the rules of a gateway, so that its next call does not. */
  async prepare(gateway: Gateway): Promise<void> {
    await this.rulesFor(gateway, null)?.prepare();
  }

  /** Null in the usual case: no rule applies. */
  rulesFor({ settings, accountId }: Gateway, token: Token | null, asked?: string): RuleSet | null {
    const ofToken = token?.policy?.guardrails;
    if (
      settings.guardrail_rules === null &&
      settings.dlp === null &&
      settings.guardrails === null &&
      asked === undefined &&
      (ofToken === undefined || ofToken.length === 0) &&
      (this.accountRules.size === 0 || !this.accountRules.has(accountId))
    )
      return null;
    const ofAccount = this.accountRules.get(accountId) ?? NONE;
    return this.#setFor(
      settings,
      ofToken ?? NONE,
      ofAccount,
      asked === undefined ? NONE : this.#askedRules(asked),
    );
  }

  #setFor(settings: GatewaySettings, token: Rules, account: Rules, asked: Rules): RuleSet | null {
    const byToken = inner(this.#sets, settings, () => new WeakMap<Rules, WeakMap<Rules, ByRules>>());
    const byAccount = inner(byToken, token, () => new WeakMap<Rules, ByRules>());
    const byAsked = inner(byAccount, account, () => new WeakMap<Rules, WeakRef<RuleSet> | null>());
    const known = byAsked.get(asked);
    if (known === null) return null;
    const set = known?.deref() ?? this.#create(settings, token, account, asked);
    if (set === null) byAsked.set(asked, null);
    else {
      if (known?.deref() !== set) byAsked.set(asked, new WeakRef(set));
      // It was used.
      this.#compiled.get(set.fingerprint);
    }
    return set;
  }

  #create(settings: GatewaySettings, token: Rules, account: Rules, asked: Rules): RuleSet | null {
    const rules = [
      ...owned("gateway", settings.guardrail_rules ?? NONE),
      ...owned("dlp", settings.dlp === null ? NONE : dlpRules(settings.dlp)),
      ...owned(
        "guardrails",
        settings.guardrails === null ? NONE : categoryRules(settings.guardrails, this.#models),
      ),
      ...owned("token", token),
      ...owned("account", account),
      ...owned("call", asked),
    ];
    if (rules.length === 0) return null;
    const created = new RuleSet(rules);
    const same = this.#compiled.get(created.fingerprint);
    if (same !== undefined) return same;
    this.#compiled.set(created.fingerprint, created);
    return created;
  }

  #askedRules(text: string): Rules {
    let rules = this.#asked.get(text);
    if (rules === undefined) {
      rules = rulesOf(text);
      if (this.#asked.size >= MAX_ASKED) this.#asked.clear();
      this.#asked.set(text, rules);
    }
    return rules;
  }
}

/** What a header asks for: `pii=mask,card=block`. */
function rulesOf(text: string): Rules {
  const rules = [...new Set(text.split(","))].map((part) => {
    const [name = "", action] = part.split("=");
    const isPii = name === "pii" || PII_KINDS.some((kind) => kind === name);
    return {
      id: part.replace("=", "-"),
      type: isPii ? "pii" : "secrets",
      ...(name === "pii" || name === "secrets" ? {} : { kinds: [name] }),
      action,
    };
  });
  return guardrailRules.parse(rules);
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
