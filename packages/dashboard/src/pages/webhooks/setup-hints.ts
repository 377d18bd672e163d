/** Where each provider wants the address and who makes the secret. */
export interface SetupHint {
  readonly where: string;
  /** `you`: you choose it and tell the provider. `provider`: it is shown there and goes into the variable. */
  readonly secretFrom: "you" | "provider";
  readonly note?: string;
}

const HINTS: Readonly<Record<string, SetupHint>> = {
  github: {
    where: "Repository or organisation → Settings → Webhooks → Add webhook. Content type: application/json.",
    secretFrom: "you",
    note: "GitHub sends a ping at once; it appears among the deliveries.",
  },
  gitlab: {
    where: "Project → Settings → Webhooks → Add new webhook; the secret goes into “Signing token”.",
    secretFrom: "you",
  },
  stripe: {
    where: "Developers → Webhooks → Add endpoint, then “Reveal” its signing secret (whsec_…).",
    secretFrom: "provider",
  },
  slack: {
    where: "Your app → Event Subscriptions → Request URL; the signing secret is under Basic Information.",
    secretFrom: "provider",
    note: "Slack checks the address at once, so set the secret first.",
  },
  twilio: {
    where: "The phone number's or service's webhook field; the secret is the account's auth token.",
    secretFrom: "provider",
  },
  shopify: {
    where: "Settings → Notifications → Webhooks; the secret is shown below the list.",
    secretFrom: "provider",
  },
  linear: {
    where: "Settings → API → Webhooks → New webhook; its signing secret is shown there.",
    secretFrom: "provider",
  },
  pagerduty: {
    where: "Integrations → Generic Webhooks (v3) → New; the secret is shown once.",
    secretFrom: "provider",
  },
  discord: {
    where:
      "Your application → General Information → Interactions Endpoint URL; the “secret” is the public key.",
    secretFrom: "provider",
    note: "Discord checks the address at once, so set the key first.",
  },
  svix: {
    where: "The sender's portal → Add endpoint; the signing secret (whsec_…) is shown on its page.",
    secretFrom: "provider",
  },
  standard: {
    where: "Any sender of Standard Webhooks: add an endpoint and copy its signing secret (whsec_…).",
    secretFrom: "provider",
  },
};

const OWN: SetupHint = {
  where: "Whatever sends to this source: it signs the raw body with the secret you both know.",
  secretFrom: "you",
};

export function hintFor(kind: string): SetupHint {
  return HINTS[kind] ?? OWN;
}
