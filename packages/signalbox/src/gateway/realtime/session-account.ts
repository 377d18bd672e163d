/**
 * The limits of a session. The session counts as one request and as one running call while it is open. Each of its responses reserves what it may
 * use and is charged with what it used, as a call of its own; from the second response on it also counts as a request, so that a long session is
 * no way around a rate limit. Gateway and token are looked up for every response: a changed limit applies to open sessions.
 */
import type { SignalboxError } from "@signalbox/protocol";
import type { Token } from "../../accounts/index.ts";
import { NO_USAGE, type Usage } from "../../engines/relay/index.ts";
import type { CallRules } from "../limits/call-rules.ts";
import { type Admission, Delay } from "../step/delay.ts";
import type { StepDemand } from "../limits/limit-rule.ts";
import type { Limits } from "../limits/limits.ts";
import { costByCaller, type PriceTable } from "../limits/price-table.ts";
import { unknownPrice } from "../limits/step-amounts.ts";
import {
  dearest,
  type KnownBounds,
  largestUsage,
  pricingOf,
  type PricingParts,
} from "../limits/step-price.ts";
import type { CallOptions } from "../step/call-options.ts";
import type { Gateway } from "../settings/gateway.ts";

export interface SessionAccountParts {
  readonly limits: Limits;
  readonly prices: PriceTable;
  readonly provider: string;
  readonly options: CallOptions;
  readonly tokenId: string | null;
  /** As they are now. */
  readonly gateway: () => Gateway;
  readonly token: () => Token | null;
}

/** What a response holds under its limits until it is settled. */
export interface Reservation {
  /** Charges what was used; null: nothing. Must be called once. */
  settle(model: string, usage: Usage | null): void;
}

/** What a response may use. */
export interface ResponseDemand {
  readonly model: string;
  /** Every model that the message names, with the model of the session. The dearest one is reserved. */
  readonly models: readonly string[];
  readonly expected: Usage;
  /** As `expected` if the message bounds it. */
  readonly largest: Usage;
  readonly isBounded: boolean;
}

/** `error`: a limit has no room for the response. */
export type Begun = Reservation | { readonly error: SignalboxError };

type Question = () => Admission;

const NO_LIMITS: Reservation = { settle: () => undefined };

export class SessionAccount {
  readonly #parts: SessionAccountParts;
  #session: CallRules | null = null;
  #responses = 0;

  constructor(parts: SessionAccountParts) {
    this.#parts = parts;
  }

  /** Counts the session; an error when a rule has no room for it. */
  async open(model: string, isKnown: boolean): Promise<SignalboxError | null> {
    const rules = this.#rules();
    this.#session = rules;
    if (rules === null) return null;
    const demand = demandOf(this.#parts.provider, model);
    const refusal =
      (await decide([() => rules.arrive([demand])])) ??
      // What such a session uses is never known.
      (!isKnown && rules.limitsCostOf(demand) && this.#pricing().unknownPrice !== "allow"
        ? unknownPrice(demand)
        : null);
    if (refusal !== null) this.close();
    return refusal;
  }

  /** The most that a response may use which does not bound itself, by the rule for all calls. */
  largest(models: readonly string[], usage: Usage, known: KnownBounds): Usage {
    return largestUsage(this.#pricing(), this.#parts.provider, models, usage, known);
  }

  /** Reserves for one response; an error when a rule has no room for it. A promise if nodes share the limits and must be asked first. */
  begin({ model, models, expected, largest, isBounded }: ResponseDemand): Begun | Promise<Begun> {
    const { provider } = this.#parts;
    const rules = this.#rules();
    this.#responses += 1;
    if (rules === null) return NO_LIMITS;
    const { custom } = this.#pricing();
    const cost = this.#costUnderLimits(models, expected);
    const demand: StepDemand = {
      ...demandOf(provider, model),
      cost: cost ?? 0,
      most: this.#costUnderLimits(models, largest) ?? 0,
      tokens: expected.tokensIn + expected.tokensOut,
      isBounded: isBounded || (custom !== undefined && "total" in custom),
    };
    const questions: Question[] = [];
    if (cost === null && rules.limitsCostOf(demand)) questions.push(() => unknownPrice(demand));
    if (this.#responses > 1) questions.push(() => rules.takeAttempt(provider, model));
    if (rules.needsTokens) questions.push(() => rules.reserve([demand]));
    const decided = decide(questions);
    return decided instanceof Promise
      ? decided.then((error) => this.#begun(rules, error))
      : this.#begun(rules, decided);
  }

  #begun(rules: CallRules, error: SignalboxError | null): Begun {
    if (error === null) return { settle: (named, used) => this.#settle(rules, named, used) };
    rules.settle([]);
    return { error };
  }

  /** Charges what needed no reservation. */
  charge(model: string, usage: Usage): void {
    const rules = this.#rules();
    if (rules !== null) this.#settle(rules, model, usage);
  }

  /** An error when money is limited and the model has no price. */
  refuseUnpriced(model: string): SignalboxError | null {
    const rules = this.#rules();
    const demand = demandOf(this.#parts.provider, model);
    if (rules === null || !rules.limitsCostOf(demand)) return null;
    return this.#costUnderLimits([model], SOME_USAGE) === null ? unknownPrice(demand) : null;
  }

  /** The cost for the log; null when the price is unknown. */
  costOf(model: string, usage: Usage): number | null {
    const { prices, provider, options } = this.#parts;
    if (options.customCost !== undefined) return costByCaller(options.customCost, usage);
    return prices.costOf(provider, model, usage, prices.ofAccount(this.#parts.gateway().accountId));
  }

  close(): void {
    this.#session?.settle([]);
    this.#session = null;
  }

  #settle(rules: CallRules, model: string, usage: Usage | null): void {
    if (usage === null) return rules.settle([]);
    const cost = this.#costUnderLimits([model], usage) ?? 0;
    const tokens = usage.tokensIn + usage.tokensOut;
    return rules.settle([{ provider: this.#parts.provider, models: [model], cost, tokens }]);
  }

  #costUnderLimits(models: readonly string[], usage: Usage): number | null {
    const pricing = this.#pricing();
    return pricing.custom === undefined
      ? dearest(pricing, this.#parts.provider, models, usage)
      : costByCaller(pricing.custom, usage);
  }

  #rules(): CallRules | null {
    const { limits, gateway, token, options } = this.#parts;
    const rules = limits.rulesOf(gateway(), token());
    rules?.setMetadata(options.metadata ?? null);
    return rules;
  }

  #pricing(): PricingParts {
    const { prices, gateway, token, tokenId, options } = this.#parts;
    return pricingOf(prices, { gateway: gateway(), token: token(), tokenId, options });
  }
}

/** Asks one limit after the other until one refuses. The answers come at once unless nodes share a limit and must be asked first. */
function decide(questions: readonly Question[]): SignalboxError | null | Promise<SignalboxError | null> {
  for (const [index, ask] of questions.entries()) {
    const admission = ask();
    if (admission instanceof Delay) return admission.ready.then(() => decide(questions.slice(index)));
    if (admission !== null) return admission;
  }
  return null;
}

function demandOf(provider: string, model: string): StepDemand {
  return { provider, model, cost: 0, most: 0, tokens: 0, isBounded: true };
}

const SOME_USAGE: Usage = { ...NO_USAGE, tokensIn: 1, tokensOut: 1 };
