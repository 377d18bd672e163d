/** What a step uses, in the unit of a rule. */
import { SignalboxError } from "@signalbox/protocol";
import { NO_RETRY } from "./limit-refusal.ts";
import { type LimitKind, MICRO, type StepDemand } from "./limit-rule.ts";

/** The unit of money is small; an amount is rounded up, so that no number of small calls is free. */
export function toMicro(dollars: number): number {
  return Math.ceil(dollars * MICRO);
}

export function amountOf(kind: LimitKind, { cost, tokens }: Pick<StepDemand, "cost" | "tokens">): number {
  if (kind === "cost") return toMicro(cost);
  return kind === "tokens" ? tokens : 1;
}

export function unknownPrice({ provider, model }: Pick<StepDemand, "provider" | "model">): SignalboxError {
  const what = model === "" ? `a call of ${provider} without a known model` : `${provider}/${model}`;
  return new SignalboxError("gateway_unknown_price", {
    message: `Price of ${what} unknown: a limit on money applies to this call. Set a price, or unknown_price in spend_limits`,
    headers: NO_RETRY,
  });
}
