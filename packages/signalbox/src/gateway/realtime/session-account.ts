/**
 * The limits of a session. The session counts as one request and as one running call while it is open. Each of its responses reserves what it may
 * use and is charged with what it used, as a call of its own; from the second response on it also counts as a request, so that a long session is
 * no way around a rate limit. Gateway and token are looked up for every response: a changed limit applies to open sessions.
 */
import type { SignalboxError } from "@signalbox/protocol";
import type { Token } from "../../accounts/index.ts";
import { NO_USAGE, type Usage } from "../../engines/relay/index.ts";
import type { CallRules } from "../limits/call-rules.ts";
import type { Grant } from "../limits/grant.ts";
import type { Taken } from "../limits/ledger.ts";
import { Refusal } from "../limits/limit-refusal.ts";
import type { StepDemand } from "../limits/limit-rule.ts";
import type { Limits } from "../limits/limits.ts";
import { costByCaller, type PriceTable } from "../limits/price-table.ts";
import { unknownPrice } from "../limits/step-amounts.ts";
import {
  highestCost,
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
  /** Every model that the message names, with the model of the session. The most expensive one is reserved. */
  readonly models: readonly string[];
  readonly expected: Usage;
  /** As `expected` if the message bounds it. */
  readonly largest: Usage;
  readonly isBounded: boolean;
}

/** `error`: a limit has no room for the response. */
export type Begun = Reservation | { readonly error: SignalboxError };

const NO_LIMITS: Reservation = { settle: () => undefined };

export class SessionAccount {
  readonly #parts: SessionAccountParts;
  /** The place of the session among parallel calls. */
  #place: Grant | null = null;
  #responses = 0;

  constructor(parts: SessionAccountParts) {
    this.#parts = parts;
  }

  /** Counts the session; an error when a rule has no room for it. */
  async open(model: string, isKnown: boolean): Promise<SignalboxError | null> {
    const rules = this.#rules();
    if (rules === null) return null;
    const demand = demandOf(this.#parts.provider, model);
    const taken = await rules.arrive([demand]);
    if (taken instanceof Refusal) return taken.toError();
    this.#place = taken;
    // What such a session uses is never known.
    const isUnpriced = !isKnown && rules.limitsCostOf(demand) && this.#pricing().unknownPrice !== "allow";
    if (!isUnpriced) return null;
    this.close();
    return unknownPrice(demand);
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
    if (cost === null && rules.limitsCostOf(demand)) return { error: unknownPrice(demand) };
    const counted = this.#responses > 1 ? rules.takeAttempt(provider, model) : null;
    return counted instanceof Promise
      ? counted.then((late) => this.#reserve(rules, demand, late))
      : this.#reserve(rules, demand, counted);
  }

  /** `counted`: null for the first response, which was counted with the session. */
  #reserve(rules: CallRules, demand: StepDemand, counted: Taken | null): Begun | Promise<Begun> {
    if (counted instanceof Refusal) return { error: counted.toError() };
    const reserved = rules.needsTokens ? rules.reserve([demand]) : null;
    return reserved instanceof Promise
      ? reserved.then((late) => this.#begun(rules, late))
      : this.#begun(rules, reserved);
  }

  #begun(rules: CallRules, reserved: Taken | null): Begun {
    if (reserved instanceof Refusal) return { error: reserved.toError() };
    return { settle: (named, used) => this.#settle(rules, reserved, named, used) };
  }

  /** Charges what needed no reservation. */
  charge(model: string, usage: Usage): void {
    const rules = this.#rules();
    if (rules !== null) this.#settle(rules, null, model, usage);
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
    this.#place?.release();
    this.#place = null;
  }

  #settle(rules: CallRules, reserved: Grant | null, model: string, usage: Usage | null): void {
    if (usage === null) return reserved?.release();
    const cost = this.#costUnderLimits([model], usage) ?? 0;
    const tokens = usage.tokensIn + usage.tokensOut;
    rules.settle(reserved, [{ provider: this.#parts.provider, models: [model], cost, tokens }]);
  }

  #costUnderLimits(models: readonly string[], usage: Usage): number | null {
    const pricing = this.#pricing();
    return pricing.custom === undefined
      ? highestCost(pricing, this.#parts.provider, models, usage)
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

function demandOf(provider: string, model: string): StepDemand {
  return { provider, model, cost: 0, most: 0, tokens: 0, isBounded: true };
}

const SOME_USAGE: Usage = { ...NO_USAGE, tokensIn: 1, tokensOut: 1 };
