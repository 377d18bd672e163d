/** Where to register the endpoint URL at each sender, and which side creates the secret. */
export interface SetupHint {
  readonly where: string;
  /** `user`: the user creates the secret and enters it at the sender. `sender`: the sender creates and shows the secret. */
  readonly secretFrom: "user" | "sender";
  readonly note?: string;
}

const HINTS: Readonly<Record<string, SetupHint>> = {
  github: {
    where: "Repository or organization → Settings → Webhooks → Add webhook. Content type: application/json.",
    secretFrom: "user",
    note: "GitHub sends a ping immediately. It appears under Deliveries.",
  },
  gitlab: {
    where: "Project → Settings → Webhooks → Add new webhook. Enter the secret as “Signing token”.",
    secretFrom: "user",
  },
  stripe: {
    where: "Developers → Webhooks → Add endpoint. Then reveal the signing secret (whsec_…).",
    secretFrom: "sender",
  },
  slack: {
    where: "Your app → Event Subscriptions → Request URL. The signing secret is under Basic Information.",
    secretFrom: "sender",
    note: "Slack verifies the URL immediately, so set the secret first.",
  },
  twilio: {
    where: "The webhook field of the phone number or service. The secret is the auth token of the account.",
    secretFrom: "sender",
  },
  shopify: {
    where: "Settings → Notifications → Webhooks. The secret is shown below the list.",
    secretFrom: "sender",
  },
  linear: {
    where: "Settings → API → Webhooks → New webhook. The signing secret is shown there.",
    secretFrom: "sender",
  },
  pagerduty: {
    where: "Integrations → Generic Webhooks (v3) → New. The secret is shown once.",
    secretFrom: "sender",
  },
  discord: {
    where:
      "Your application → General Information → Interactions Endpoint URL. The secret is the public key.",
    secretFrom: "sender",
    note: "Discord verifies the URL immediately, so set the key first.",
  },
  sendgrid: {
    where:
      "Settings → Mail Settings → Event Webhooks → Create. Enable the signed event webhook; the secret is its verification key.",
    secretFrom: "sender",
  },
  paypal: {
    where:
      "Apps & Credentials → your app → Webhooks → Add. The secret is the webhook ID that is shown there.",
    secretFrom: "sender",
  },
  sns: {
    where:
      "Topic → Create subscription, protocol HTTPS, without raw message delivery. The secret is the topic's ARN.",
    secretFrom: "sender",
    note: "SNS asks to confirm the subscription immediately, so set the ARN first.",
  },
  svix: {
    where:
      "The portal of the sender → Add endpoint. The signing secret (whsec_…) is shown on the endpoint's page.",
    secretFrom: "sender",
  },
  standard: {
    where:
      "The settings of any sender that supports Standard Webhooks: add an endpoint and copy its signing secret (whsec_…).",
    secretFrom: "sender",
  },
};

const CUSTOM: SetupHint = {
  where: "Your own sender. It must sign the raw body with the shared secret.",
  secretFrom: "user",
};

export function hintFor(kind: string): SetupHint {
  return HINTS[kind] ?? CUSTOM;
}
