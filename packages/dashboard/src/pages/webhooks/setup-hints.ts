/** Where to enter the endpoint URL at each provider, and which side creates the secret. */
export interface SetupHint {
  readonly where: string;
  /** `you`: the user creates the secret and enters it at the provider. `provider`: the provider creates and shows the secret. */
  readonly secretFrom: "you" | "provider";
  readonly note?: string;
}

const HINTS: Readonly<Record<string, SetupHint>> = {
  github: {
    where: "Repository or organisation → Settings → Webhooks → Add webhook. Content type: application/json.",
    secretFrom: "you",
    note: "GitHub sends a ping immediately. It appears under Deliveries.",
  },
  gitlab: {
    where: "Project → Settings → Webhooks → Add new webhook. Enter the secret as “Signing token”.",
    secretFrom: "you",
  },
  stripe: {
    where: "Developers → Webhooks → Add endpoint. Then reveal the signing secret (whsec_…).",
    secretFrom: "provider",
  },
  slack: {
    where: "Your app → Event Subscriptions → Request URL. The signing secret is under Basic Information.",
    secretFrom: "provider",
    note: "Slack verifies the URL immediately, so set the secret first.",
  },
  twilio: {
    where: "The webhook field of the phone number or service. The secret is the auth token of the account.",
    secretFrom: "provider",
  },
  shopify: {
    where: "Settings → Notifications → Webhooks. The secret is shown below the list.",
    secretFrom: "provider",
  },
  linear: {
    where: "Settings → API → Webhooks → New webhook. The signing secret is shown there.",
    secretFrom: "provider",
  },
  pagerduty: {
    where: "Integrations → Generic Webhooks (v3) → New. The secret is shown once.",
    secretFrom: "provider",
  },
  discord: {
    where:
      "Your application → General Information → Interactions Endpoint URL. The secret is the public key.",
    secretFrom: "provider",
    note: "Discord verifies the URL immediately, so set the key first.",
  },
  svix: {
    where:
      "The portal of the sender → Add endpoint. The signing secret (whsec_…) is shown on the endpoint's page.",
    secretFrom: "provider",
  },
  standard: {
    where:
      "The settings of any sender that supports Standard Webhooks: add an endpoint and copy its signing secret (whsec_…).",
    secretFrom: "provider",
  },
};

const CUSTOM: SetupHint = {
  where: "Your own sender. It must sign the raw body with the shared secret.",
  secretFrom: "you",
};

export function hintFor(kind: string): SetupHint {
  return HINTS[kind] ?? CUSTOM;
}
