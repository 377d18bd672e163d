/** The setting `dlp` of the original as rules: its profiles are kinds of personal data and secrets. */
import { type GuardrailRule, SECRET_KINDS } from "../../accounts/index.ts";
import { dlpProfileOf } from "../settings/dlp-profiles.ts";
import type { DlpSettings } from "../settings/gateway-settings.ts";

/** A rule for each policy and profile, so that a finding names both. */
export function dlpRules(settings: DlpSettings): GuardrailRule[] {
  if (!settings.enabled) return [];
  const policies =
    "policies" in settings
      ? settings.policies.filter(({ enabled }) => enabled)
      : [{ id: "", action: settings.action, check: ["REQUEST", "RESPONSE"], profiles: settings.profiles }];
  return policies.flatMap(({ id, action, check, profiles }) =>
    profiles.map((profile): GuardrailRule => {
      const meaning = dlpProfileOf(profile);
      if (meaning === undefined) throw new TypeError("settings have known profiles only");
      const base = {
        id: `${id}/${profile}`,
        on: check.map((one) => (one === "REQUEST" ? ("prompt" as const) : ("response" as const))),
        action: action === "BLOCK" ? ("block" as const) : ("flag" as const),
        // A flag must not refuse what it cannot read.
        on_failure: action === "BLOCK" ? ("block" as const) : ("allow" as const),
        on_media: "allow" as const,
        allow: [],
        logs: "full" as const,
        enabled: true,
      };
      return meaning === "secrets"
        ? { ...base, type: "secrets", kinds: [...SECRET_KINDS] }
        : { ...base, type: "pii", kinds: [...meaning.pii] };
    }),
  );
}

/** The policy and the profile of a rule. */
export function dlpNames(ruleId: string): { readonly policy: string; readonly profile: string } {
  const slash = ruleId.lastIndexOf("/");
  return { policy: ruleId.slice(0, slash), profile: ruleId.slice(slash + 1) };
}
