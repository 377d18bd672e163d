import type { BudgetState } from "@signalbox/client";
import { count, money } from "../../format/number.ts";

/** An amount in the unit of a limit. */
export function amount(type: BudgetState["type"], value: number): string {
  return type === "cost" ? money(value) : count(value);
}

export const UNITS: Readonly<Record<BudgetState["type"], string>> = {
  cost: "US dollars",
  requests: "requests",
  tokens: "tokens",
  parallel: "calls at the same time",
};
