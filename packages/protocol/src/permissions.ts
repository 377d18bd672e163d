/** What a token may do inside its account. The root token may do everything in every account. */
export const PERMISSIONS = [
  "gateway.run",
  "gateway.read",
  "gateway.edit",
  "tags.read",
  "tags.edit",
  "agents.read",
  "agents.edit",
  "webhooks.read",
  "webhooks.edit",
  "tokens.edit",
] as const;

export type Permission = (typeof PERMISSIONS)[number];
