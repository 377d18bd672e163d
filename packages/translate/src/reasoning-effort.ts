/** Named efforts and token budgets of reasoning, into each other. */
import type { Effort, Reasoning } from "./neutral/request.ts";
import type { EncodeEnvironment } from "./request-codec.ts";
import { sourceField } from "./source-fields.ts";

const EFFORTS: readonly Effort[] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/** Google publishes the budgets that its own OpenAI-shaped endpoint uses; the highest two are this package's choice. */
const BUDGETS: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 1024,
  low: 1024,
  medium: 8192,
  high: 24_576,
  xhigh: 32_768,
  max: 32_768,
};

export function effortOf(value: unknown): Effort | null {
  return EFFORTS.find((effort) => effort === value) ?? null;
}

export function budgetOf(reasoning: Reasoning): number | null {
  if (reasoning.budgetTokens !== null) return reasoning.budgetTokens;
  return reasoning.effort === null ? null : BUDGETS[reasoning.effort];
}

/** The effort that the target accepts: the wanted one, else the next higher, else the highest. Another one is listed. */
export function chooseEffort(
  reasoning: Reasoning,
  { from, traits, losses }: EncodeEnvironment,
): Effort | null {
  const wanted = reasoning.effort ?? effortOfBudget(reasoning.budgetTokens);
  if (wanted === null || traits.efforts.includes(wanted)) return wanted;
  const rank = EFFORTS.indexOf(wanted);
  if (reasoning.effort !== null) losses.note(sourceField(from, "reasoning"));
  return traits.efforts.find((effort) => EFFORTS.indexOf(effort) >= rank) ?? traits.efforts.at(-1) ?? null;
}

function effortOfBudget(tokens: number | null): Effort | null {
  if (tokens === null) return null;
  if (tokens <= 0) return tokens < 0 ? null : "none";
  if (tokens < 4096) return "low";
  return tokens < 16_384 ? "medium" : "high";
}
