/** The permissions of a token in its account. The root token has all permissions in all accounts. */
export const PERMISSIONS = [
  "gateway.run",
  "gateway.read",
  "gateway.edit",
  /** The price that a caller states for a call counts in limits. */
  "gateway.price",
  "tags.read",
  "tags.edit",
  "agents.read",
  "agents.edit",
  "webhooks.read",
  "webhooks.edit",
  "tokens.edit",
  /** Reads the audit log of the account, with the state of resources before and after each change. */
  "audit.read",
] as const;

export type Permission = (typeof PERMISSIONS)[number];
