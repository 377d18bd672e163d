/** The setting `dlp` of the original as rules: its profiles are kinds of personal data and secrets. */
import type { GuardrailRule } from "../../accounts/index.ts";
import type { DLP_PROFILES, DlpSettings } from "../settings/gateway-settings.ts";

type Profile = (typeof DLP_PROFILES)[number];
type Kinds = { readonly pii: Extract<GuardrailRule, { type: "pii" }>["kinds"]; readonly secrets: boolean };

const KINDS: Readonly<Record<Profile, Kinds>> = {
  financial: { pii: ["card", "iban"], secrets: false },
  identifiers: { pii: ["national_id", "passport"], secrets: false },
  personal: { pii: ["email", "phone", "ip"], secrets: false },
  credentials: { pii: [], secrets: true },
};

/** A rule for each policy and profile, so that a finding names both. */
export function dlpRules(settings: DlpSettings): GuardrailRule[] {
  if (!settings.enabled) return [];
  const policies =
    "policies" in settings
      ? settings.policies.filter(({ enabled }) => enabled)
      : [{ id: "", action: settings.action, check: ["REQUEST", "RESPONSE"], profiles: settings.profiles }];
  return policies.flatMap(({ id, action, check, profiles }) =>
    profiles.map((profile): GuardrailRule => {
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
      const { pii, secrets } = KINDS[profile];
      return secrets
        ? { ...base, type: "secrets", kinds: ["key", "private_key", "entropy"] }
        : { ...base, type: "pii", kinds: [...pii] };
    }),
  );
}

/** The policy and the profile of a rule. */
export function dlpNames(ruleId: string): { readonly policy: string; readonly profile: string } {
  const slash = ruleId.lastIndexOf("/");
  return { policy: ruleId.slice(0, slash), profile: ruleId.slice(slash + 1) };
}
