/** The JSON form of a token in the management interface, without its text. */
import { PERMISSIONS } from "@signalbox/protocol";
import { z } from "zod";
import { isoTime } from "../core/iso-time.ts";
import type { Token } from "./token.ts";
import { isLimiting, NO_POLICY } from "./token-policy.ts";
import { applyPolicyBody, policyFields, policyResult, showPolicy } from "./token-policy-schema.ts";
import type { NewToken } from "./tokens.ts";

/** More gateways are counted in a message instead of named. */
const MAX_NAMED = 3;

export const tokenResult = z.object({
  id: z.string(),
  name: z.string(),
  permissions: z.array(z.enum(PERMISSIONS)),
  gateway_id: z.string().nullable(),
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime().nullable(),
  last_used_at: z.iso.datetime().nullable(),
  last_four: z.string(),
  disabled: z.boolean(),
  /** The time until which the secret before the last rotation is valid. */
  previous_expires_at: z.iso.datetime().nullable(),
  ...policyResult,
});

const expiry = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

/** What a new token can have besides its name and permissions. */
export const newTokenFields = {
  expires_at: expiry.nullish(),
  disabled: z.boolean().optional(),
  ...policyFields,
};

const newTokenBody = z.object(newTokenFields);

/** The members of a checked body that a new token takes over. */
export function toNewToken(body: z.output<typeof newTokenBody>): Omit<NewToken, "name" | "permissions"> {
  return {
    expiresAt: body.expires_at ?? null,
    isDisabled: body.disabled ?? false,
    policy: applyPolicyBody(NO_POLICY, body),
  };
}

export function showToken(token: Token, lastUsedAt?: number): z.input<typeof tokenResult> {
  return {
    id: token.id,
    name: token.name,
    permissions: [...token.permissions],
    gateway_id: token.gatewayId,
    created_at: isoTime(token.createdAt),
    expires_at: token.expiresAt === null ? null : isoTime(token.expiresAt),
    last_used_at: lastUsedAt === undefined ? null : isoTime(lastUsedAt),
    last_four: token.suffix,
    disabled: token.isDisabled,
    previous_expires_at: token.previous === null ? null : isoTime(token.previous.endsAt),
    ...showPolicy(token.policy ?? NO_POLICY),
  };
}

/** A limited token of a gateway without authentication limits only those who send it. */
export function warnOfOpenGateways(
  { policy, permissions, gatewayId }: Pick<Token, "policy" | "permissions" | "gatewayId">,
  openGateways: readonly string[],
): string[] {
  if (!isLimiting(policy) || !permissions.has("gateway.run")) return [];
  const open = openGateways.filter((id) => gatewayId === null || id === gatewayId);
  if (open.length === 0) return [];
  const names = open.length > MAX_NAMED ? `${open.length} gateways` : `gateway ${open.join(", ")}`;
  return [
    `${names}: authentication is off, so callers may leave the token and its limits out; turn authentication on to enforce them`,
  ];
}
