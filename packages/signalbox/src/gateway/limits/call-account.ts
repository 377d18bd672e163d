/**
 * The account of one call: admits its steps and attempts under the call's limits, and settles what they used. Exists only for calls that
 * have limits.
 */
import type { AttemptReport } from "../reliability/attempt-report.ts";
import type { Usage } from "../../engines/relay/index.ts";
import type { Step } from "../step/step.ts";
import type { CallRules, Charge } from "./call-rules.ts";
import type { CallFigures } from "./call-figures.ts";
import type { Admission } from "../step/delay.ts";
import type { Remaining, StepDemand } from "./limit-rule.ts";
import { unknownPrice } from "./step-amounts.ts";
import { costOfStep, isModelCertain, priceStep, type PricingParts, type StepPrice } from "./step-price.ts";

export interface CallAccountParts {
  readonly rules: CallRules;
  readonly pricing: PricingParts;
}

export class CallAccount {
  readonly #parts: CallAccountParts;
  readonly #prices = new Map<Step, StepPrice>();
  #isSettled = false;
  #hasBegun = false;
  /** The first step was admitted before the call began. */
  #isFirstAdmitted = false;
  /** Steps that were known when the call was counted. */
  #arrivedSteps = 0;
  /** An attempt that was counted and has not been sent. */
  #counted: { readonly provider: string; readonly model: string } | null = null;
  /** The next attempt must reserve, even if its step is admitted. */
  #mustReserve = false;

  constructor(parts: CallAccountParts) {
    this.#parts = parts;
  }

  /** Counts the call; an error when a rule has no room for it. */
  arrive(steps: readonly Step[]): Admission {
    const { rules } = this.#parts;
    this.#arrivedSteps = steps.length;
    return rules.arrive(rules.hasConditions ? steps.flatMap((step) => this.#demandOf(step)) : ANY_STEP);
  }

  /** Admits the only step of a call, before the call begins. */
  admitFirst(step: Step): Admission {
    const refusal = this.admit(step, 0);
    this.#isFirstAdmitted = refusal === null;
    return refusal;
  }

  /** Called before the first attempt of a step. An error sends the call to its next step; that of the last step goes to the client. */
  admit(step: Step, stepIndex: number): Admission {
    if (stepIndex === 0 && this.#isFirstAdmitted) return null;
    return this.#arriveLate(step, stepIndex) ?? this.#reserve(step);
  }

  /** A step of a route becomes known when the one before it has failed. */
  #arriveLate(step: Step, stepIndex: number): Admission {
    const { rules } = this.#parts;
    if (stepIndex < this.#arrivedSteps || !rules.hasConditions) return null;
    const refusal = rules.arrive(this.#demandOf(step));
    if (refusal === null) this.#arrivedSteps = stepIndex + 1;
    return refusal;
  }

  /** Reserves what the step may use, in place of what an earlier step reserved. */
  #reserve(step: Step): Admission {
    const { rules } = this.#parts;
    if (!rules.needsTokens) return null;
    const demand = this.#demandOf(step);
    if (this.#priceOf(step).cost === null && demand.some((one) => rules.limitsCostOf(one))) {
      return unknownPrice({ provider: step.provider.slug, model: step.model });
    }
    rules.release();
    const refusal = rules.reserve(demand);
    if (refusal === null) this.#mustReserve = false;
    return refusal;
  }

  /** Called for each attempt after the first one of the call; an error has the same effect. An attempt that was counted and not sent counts for this one. */
  admitAttempt(step: Step): Admission {
    const { rules } = this.#parts;
    const reserved = this.#mustReserve ? this.#reserve(step) : null;
    if (reserved !== null) return reserved;
    const { model } = step;
    const provider = step.provider.slug;
    const counted = this.#counted;
    if (
      counted !== null &&
      (!rules.hasConditions || (counted.provider === provider && counted.model === model))
    )
      return null;
    const refusal = rules.takeAttempt(provider, model);
    if (refusal === null) this.#counted = { provider, model };
    return refusal;
  }

  attemptSent(): void {
    this.#counted = null;
  }

  /** Another attempt follows. */
  attemptFailed(report: AttemptReport): void {
    if (this.#chargeOfReport(report) === null) return;
    this.#parts.rules.keep();
    this.#mustReserve = true;
  }

  /** Another attempt is to run beside the present one: both hold what they may use. The returned function takes that back: it is not sent. */
  reserveBeside(): () => void {
    const { rules } = this.#parts;
    const takeBack = rules.keep();
    this.#mustReserve = true;
    return () => {
      rules.stopWaiting();
      takeBack();
      this.#mustReserve = false;
    };
  }

  /** Whether the model that the response names is needed for the price. */
  wantsModel(step: Step): boolean {
    return !isModelCertain(step, this.#priceOf(step).models);
  }

  /** The call goes upstream: it settles when it ends. */
  begin(): void {
    this.#hasBegun = true;
  }

  /** Gives back what a call holds that has not begun. */
  giveUp(step: Step): void {
    if (!this.#hasBegun) this.settle(step, null, null);
  }

  /** Charges what the call and its other attempts used. Only the first call counts. */
  settle(step: Step, figures: CallFigures | null, others: readonly AttemptReport[] | null): void {
    const { rules } = this.#parts;
    if (this.#isSettled) return;
    this.#isSettled = true;
    const charges: Charge[] = [];
    for (const report of others ?? []) {
      const charge = this.#chargeOfReport(report);
      if (charge !== null) charges.push(charge);
    }
    if (figures !== null) charges.push(this.#chargeOfAnswer(step, figures));
    rules.settle(charges);
  }

  remaining(step: Step): Remaining | null {
    return this.#parts.rules.remaining({ provider: step.provider.slug, model: step.model });
  }

  #chargeOfAnswer(step: Step, figures: CallFigures): Charge {
    if (figures.state === "none" && !figures.isCustomCost) return this.#chargeOf(step, 0, 0);
    const price = this.#priceOf(step);
    // A call of which nothing is known counts with what it could use.
    if (figures.state === "unknown" || (price.isDeferred && figures.state !== "reported"))
      return this.#chargeOf(step, price.cost ?? 0, tokensOf(price.usage));
    const { usage } = figures;
    const cost = costOfStep(this.#parts.pricing, step, price.models, figures.named, usage) ?? price.cost ?? 0;
    return this.#chargeOf(step, cost, tokensOf(usage));
  }

  /** Failed attempts count when the provider reported usage, or when the caller cut them off. */
  #chargeOfReport({ step, usage, outcome, failure }: AttemptReport): Charge | null {
    const price = this.#priceOf(step);
    if (usage !== null && tokensOf(usage) > 0) {
      const cost = costOfStep(this.#parts.pricing, step, price.models, null, usage) ?? price.cost ?? 0;
      return this.#chargeOf(step, cost, tokensOf(usage));
    }
    const isCutByCaller = outcome === "cancelled" || (failure?.kind === "timeout" && hasOwnTimeout(step));
    return isCutByCaller ? this.#chargeOf(step, price.cost ?? 0, tokensOf(price.usage)) : null;
  }

  /** A request that may mean several models is charged to the rules of all of them. */
  #chargeOf(step: Step, cost: number, tokens: number): Charge {
    const { models } = this.#priceOf(step);
    return {
      provider: step.provider.slug,
      models: models.length === 0 ? [step.model] : models,
      cost,
      tokens,
    };
  }

  #demandOf(step: Step): StepDemand[] {
    const price = this.#priceOf(step);
    const models = price.models.length === 0 ? [step.model] : price.models;
    return models.map((model) => ({
      provider: step.provider.slug,
      model,
      cost: price.cost ?? 0,
      most: price.most,
      tokens: tokensOf(price.usage),
      isBounded: price.isBounded,
      isPartial: price.isPartial === true,
    }));
  }

  #priceOf(step: Step): StepPrice {
    let price = this.#prices.get(step);
    if (price === undefined) {
      price = priceStep(this.#parts.pricing, step);
      this.#prices.set(step, price);
    }
    return price;
  }
}

/** For rules that apply to every call. */
const ANY_STEP: readonly StepDemand[] = [
  { provider: "", model: "", cost: 0, most: 0, tokens: 0, isBounded: true },
];

/** An attempt that the caller or a route limits in time, and that ends by that limit, has run at the provider. */
function hasOwnTimeout({ policy: { requestTimeoutMs, firstTokenTimeoutMs, stallTimeoutMs } }: Step): boolean {
  return requestTimeoutMs !== null || firstTokenTimeoutMs !== null || stallTimeoutMs !== null;
}

function tokensOf({ tokensIn, tokensOut }: Usage): number {
  return tokensIn + tokensOut;
}
