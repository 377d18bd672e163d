/** The setting `guardrails` of the original as rules: a rule for each category, so that a finding names it. Rules of one model ask it once. */
import type { GuardrailRule } from "../../accounts/index.ts";
import type { CategorySettings } from "../settings/gateway-settings.ts";

/** As `provider/model`. */
export interface JudgeModels {
  /** Judges the categories S1 to S13. */
  readonly safetyModel: string;
  /** Judges P1. */
  readonly injectionModel: string;
}

export function categoryRules(
  settings: CategorySettings,
  { safetyModel, injectionModel }: JudgeModels,
): GuardrailRule[] {
  return (["prompt", "response"] as const).flatMap((place) =>
    Object.entries(settings[place]).map(([category, action]): GuardrailRule => {
      const isInjection = category === "P1";
      return {
        id: category,
        on: [place],
        type: "model",
        model: isInjection ? injectionModel : safetyModel,
        format: isInjection ? "injection" : "guard",
        ...(isInjection ? {} : { categories: [category] }),
        action: action === "BLOCK" ? "block" : "flag",
        // As the original: a flag lets pass what nobody judged.
        on_failure: action === "BLOCK" ? "block" : "allow",
        on_media: "allow",
        timeout_ms: 10_000,
        stream: "window",
        logs: "full",
        enabled: true,
      };
    }),
  );
}
