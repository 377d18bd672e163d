/**
 * The account of one call: admits its steps and attempts under the call's limits, holds what they may use, and settles what they used. Exists only for
 * calls that have limits.
 *
 * Invariants:
 * 1. Everything that the call has taken is in `#held` until it is given back: whatever way a call ends, `settle` leaves nothing behind.
 * 2. An attempt is admitted with a reservation for its own step. One that was charged, or runs on beside the next attempt, keeps its reservation until
 *    the call ends, and the next attempt reserves for itself.
 * 3. What arrives after the call has ended is released.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Usage } from "../../engines/relay/index.ts";
import type { AttemptReport } from "../reliability/attempt-report.ts";
import type { Step } from "../step/step.ts";
import type { CallSpend } from "./call-spend.ts";
import type { CallRules, StepCharge } from "./call-rules.ts";
import type { Grant } from "./grant.ts";
import type { Taken } from "./ledger.ts";
import { Refusal } from "./limit-refusal.ts";
import type { Remaining, StepDemand } from "./limit-rule.ts";
import { unknownPrice } from "./step-amounts.ts";
import {
  costOfStep,
  FREE,
  isModelCertain,
  priceStep,
  type PricingParts,
  type StepPrice,
} from "./step-price.ts";

/** Null: the call may go on. A promise only if nodes share the limits and PostgreSQL must be asked; it never rejects. */
export type Admission = SignalboxError | null | Promise<SignalboxError | null>;

export interface CallAccountParts {
  readonly rules: CallRules;
  readonly pricing: PricingParts;
}

/** The answer to a call that has ended meanwhile, and does not read it. */
const ENDED = new SignalboxError("internal", { message: "The call has ended" });

export class CallAccount {
  readonly #parts: CallAccountParts;
  /** Of the step that was asked for last, and of those before it. */
  #pricedStep: Step | null = null;
  #price: StepPrice = FREE;
  #otherPrices: Map<Step, StepPrice> | null = null;
  #isSettled = false;
  #hasBegun = false;
  /** Steps that were known when the call was counted. */
  #arrivedSteps = 0;
  readonly #held: Grant[] = [];
  /** Of `#held`, what the next attempt of `#reservedStep` may use. */
  #reservation: Grant | null = null;
  #reservedStep: Step | null = null;
  /** The reservation may not survive the end of the process. */
  #isUnwritten = false;
  /** The first attempt was counted with the call. */
  #hasSent = false;
  /** An attempt of this step was counted and has not been sent. */
  #counted: Step | null = null;

  constructor(parts: CallAccountParts) {
    this.#parts = parts;
  }

  /** Counts the call; an error when a rule has no room for it. */
  arrive(steps: readonly Step[]): Admission {
    const { hasConditions } = this.#parts.rules;
    const demand = hasConditions ? steps.flatMap((step) => this.#demandOf(step)) : ANY_STEP;
    return this.#arrive(demand, steps.length, false);
  }

  #arrive(demand: readonly StepDemand[], steps: number, isNow: boolean): Admission {
    const taken = this.#parts.rules.arrive(demand, isNow, this.#held);
    return taken instanceof Promise
      ? taken.then((late) => this.#arrived(late, steps))
      : this.#arrived(taken, steps);
  }

  #arrived(taken: Taken, steps: number): SignalboxError | null {
    if (taken instanceof Refusal) return taken.toError();
    this.#arrivedSteps = steps;
    return this.#hold(taken);
  }

  /** Called before each attempt. An error sends the call to its next step; that of the last step goes to the client. `isNow`: the attempt cannot wait. */
  admit(step: Step, stepIndex: number, isNow = false): Admission {
    const arrived = this.#arriveLate(step, stepIndex, isNow);
    if (arrived === null) return this.#reserveAndCount(step, isNow);
    return arrived instanceof Promise
      ? arrived.then((refusal) => refusal ?? this.#reserveAndCount(step, isNow))
      : arrived;
  }

  #reserveAndCount(step: Step, isNow: boolean): Admission {
    const reserved = this.#reserve(step, isNow);
    if (reserved === null) return this.#count(step, isNow);
    return reserved instanceof Promise
      ? reserved.then((refusal) => refusal ?? this.#count(step, isNow))
      : reserved;
  }

  /** A step of a route becomes known when the one before it has failed. */
  #arriveLate(step: Step, stepIndex: number, isNow: boolean): Admission {
    if (stepIndex < this.#arrivedSteps || !this.#parts.rules.hasConditions) return null;
    return this.#arrive(this.#demandOf(step), stepIndex + 1, isNow);
  }

  /** Reserves what the step may use, in place of what an earlier step reserved. */
  #reserve(step: Step, isNow: boolean): Admission {
    const { rules } = this.#parts;
    if (!rules.needsTokens || step === this.#reservedStep) return null;
    const demand = this.#demandOf(step);
    if (this.#priceOf(step).cost === null && demand.some((one) => rules.limitsCostOf(one))) {
      return unknownPrice({ provider: step.provider.slug, model: step.model });
    }
    this.#dropReservation();
    const taken = rules.reserve(demand, isNow, !isNow);
    return taken instanceof Promise
      ? taken.then((late) => this.#reserved(step, late, isNow))
      : this.#reserved(step, taken, isNow);
  }

  #reserved(step: Step, taken: Taken, isWritten: boolean): SignalboxError | null {
    if (taken instanceof Refusal) return taken.toError();
    const ended = this.#hold(taken);
    if (ended !== null) return ended;
    this.#reservation = taken;
    this.#reservedStep = step;
    this.#isUnwritten = taken.number > 0 && !isWritten;
    return null;
  }

  /** Counts each attempt after the first one of the call. One that was counted and not sent counts for this one. */
  #count(step: Step, isNow: boolean): Admission {
    const { rules } = this.#parts;
    const counted = this.#counted;
    if (!this.#hasSent || (counted !== null && (!rules.hasConditions || isSameTarget(counted, step))))
      return null;
    const taken = rules.takeAttempt(step.provider.slug, step.model, isNow);
    return taken instanceof Promise
      ? taken.then((late) => this.#attemptCounted(step, late))
      : this.#attemptCounted(step, taken);
  }

  #attemptCounted(step: Step, taken: Taken): SignalboxError | null {
    if (taken instanceof Refusal) return taken.toError();
    this.#counted = step;
    return this.#isSettled ? ENDED : null;
  }

  /** False if an attempt may be sent at once; else `task` is called when the reservation survives the end of the process. */
  mustWait(task: () => void): boolean {
    if (!this.#isUnwritten) return false;
    this.#isUnwritten = false;
    this.#parts.rules.whenWritten(task);
    return true;
  }

  attemptSent(): void {
    this.#hasSent = true;
    this.#counted = null;
  }

  /** Another attempt follows. */
  attemptFailed(report: AttemptReport): void {
    if (this.#chargeOfReport(report) !== null) this.#keepReservation();
  }

  /**
   * What is admitted next runs beside the attempt that was sent last: both hold what they may use. The returned function undoes that: nothing was
   * sent.
   */
  beside(): () => void {
    const [reservation, step] = [this.#reservation, this.#reservedStep];
    this.#keepReservation();
    return () => {
      this.#dropReservation();
      this.#reservation = reservation;
      this.#reservedStep = step;
    };
  }

  /** It stays held until the call ends. */
  #keepReservation(): void {
    this.#reservation = null;
    this.#reservedStep = null;
  }

  #dropReservation(): void {
    if (this.#reservation !== null) {
      this.#held.splice(this.#held.indexOf(this.#reservation), 1);
      this.#reservation.release();
    }
    this.#keepReservation();
  }

  #hold(grant: Grant): SignalboxError | null {
    if (this.#isSettled) {
      grant.release();
      return ENDED;
    }
    this.#held.push(grant);
    return null;
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

  /** Charges what the call and its other attempts used, and returns the dollars that were charged. Only the first call counts. */
  settle(step: Step, spend: CallSpend | null, others: readonly AttemptReport[] | null): number {
    const { rules } = this.#parts;
    if (this.#isSettled) return 0;
    this.#isSettled = true;
    const charges: StepCharge[] = [];
    if (others !== null) {
      for (const report of others) {
        const charge = this.#chargeOfReport(report);
        if (charge !== null) charges.push(charge);
      }
    }
    if (spend !== null) charges.push(this.#chargeOfAnswer(step, spend));
    // What was used is counted before anything else is given back.
    rules.settle(this.#reservation, charges);
    for (const grant of this.#held) grant.release();
    this.#held.length = 0;
    let charged = 0;
    for (const { cost } of charges) charged += cost;
    return charged;
  }

  remaining(step: Step): Remaining | null {
    return this.#parts.rules.remaining({ provider: step.provider.slug, model: step.model }, this.#held);
  }

  #chargeOfAnswer(step: Step, spend: CallSpend): StepCharge {
    if (spend.state === "none" && !spend.isCustomCost) return this.#chargeOf(step, 0, 0);
    const price = this.#priceOf(step);
    // A call of which nothing is known counts with what it could use.
    if (spend.state === "unknown" || (price.isDeferred && spend.state !== "reported"))
      return this.#chargeOf(step, price.cost ?? 0, tokensOf(price.usage));
    const { usage } = spend;
    const cost = costOfStep(this.#parts.pricing, step, price.models, spend.named, usage) ?? price.cost ?? 0;
    return this.#chargeOf(step, cost, tokensOf(usage));
  }

  /** Failed attempts count when the provider reported usage, or when the caller cut them off. */
  #chargeOfReport({ step, usage, outcome, failure }: AttemptReport): StepCharge | null {
    const price = this.#priceOf(step);
    if (usage !== null && tokensOf(usage) > 0) {
      const cost = costOfStep(this.#parts.pricing, step, price.models, null, usage) ?? price.cost ?? 0;
      return this.#chargeOf(step, cost, tokensOf(usage));
    }
    const isCutByCaller = outcome === "cancelled" || (failure?.kind === "timeout" && hasOwnTimeout(step));
    return isCutByCaller ? this.#chargeOf(step, price.cost ?? 0, tokensOf(price.usage)) : null;
  }

  /** A request that may mean several models is charged to the rules of all of them. */
  #chargeOf(step: Step, cost: number, tokens: number): StepCharge {
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
    if (step === this.#pricedStep) return this.#price;
    if (this.#pricedStep !== null) (this.#otherPrices ??= new Map()).set(this.#pricedStep, this.#price);
    this.#price = this.#otherPrices?.get(step) ?? priceStep(this.#parts.pricing, step);
    this.#pricedStep = step;
    return this.#price;
  }
}

/** For rules that apply to every call. */
const ANY_STEP: readonly StepDemand[] = [
  { provider: "", model: "", cost: 0, most: 0, tokens: 0, isBounded: true },
];

/** Rules with conditions apply to both, or to neither. */
function isSameTarget(a: Step, b: Step): boolean {
  return a.model === b.model && a.provider.slug === b.provider.slug;
}

/** An attempt that the caller or a route limits in time, and that ends by that limit, has run at the provider. */
function hasOwnTimeout({ policy: { requestTimeoutMs, firstTokenTimeoutMs, stallTimeoutMs } }: Step): boolean {
  return requestTimeoutMs !== null || firstTokenTimeoutMs !== null || stallTimeoutMs !== null;
}

function tokensOf({ tokensIn, tokensOut }: Usage): number {
  return tokensIn + tokensOut;
}
