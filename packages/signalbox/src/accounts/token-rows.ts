/** Tokens as rows of the database. */
import { type Permission, PERMISSIONS } from "@signalbox/protocol";
import { sql, type SqlQuery } from "../core/sql.ts";
import type { Token } from "./token.ts";
import { policyFromText, policyToText, type TokenPolicy } from "./token-policy.ts";

export interface TokenRow {
  readonly id: string;
  readonly account_id: string;
  readonly name: string;
  readonly hash: string;
  readonly suffix: string;
  readonly permissions: string;
  readonly gateway_id: string | null;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly policy: string | null;
  readonly disabled: number;
  readonly previous_hash: string | null;
  readonly previous_ends_at: number | null;
}

const KNOWN: ReadonlySet<string> = new Set(PERMISSIONS);

export function fromRow(row: TokenRow): Token {
  const token = {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    hash: row.hash,
    suffix: row.suffix,
    permissions: new Set(row.permissions.split(" ").filter((name): name is Permission => KNOWN.has(name))),
    gatewayId: row.gateway_id,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    isDisabled: row.disabled === 1,
    previous:
      row.previous_hash === null ? null : { hash: row.previous_hash, endsAt: row.previous_ends_at ?? 0 },
    policy: null,
  };
  return row.policy === null ? token : withPolicy(token, row.policy);
}

/** The policy is parsed when it is first used: most of 100,000 virtual keys are idle, and the start must not wait for them. */
function withPolicy(token: Token, text: string): Token {
  let policy: TokenPolicy | null = null;
  return Object.defineProperty(token, "policy", {
    enumerable: true,
    configurable: true,
    get: () => (policy ??= policyFromText(text)),
  });
}

export function insertToken(token: Token): SqlQuery {
  const { id, accountId, name, hash, suffix, permissions, gatewayId, createdAt, expiresAt, policy } = token;
  return sql`INSERT INTO token (id, account_id, name, hash, suffix, permissions, gateway_id, created_at, expires_at, policy, owner, disabled)
             VALUES (${id}, ${accountId}, ${name}, ${hash}, ${suffix}, ${[...permissions].join(" ")}, ${gatewayId}, ${createdAt}, ${expiresAt},
                     ${policy === null ? null : policyToText(policy)}, ${policy?.owner ?? null}, ${token.isDisabled ? 1 : 0})`;
}

/** Writes what a change or a rotation can change. */
export function updateToken(token: Token, now: number): SqlQuery {
  const { id, name, hash, suffix, expiresAt, policy, previous } = token;
  return sql`UPDATE token SET name = ${name}, hash = ${hash}, suffix = ${suffix}, expires_at = ${expiresAt},
             policy = ${policy === null ? null : policyToText(policy)}, owner = ${policy?.owner ?? null},
             disabled = ${token.isDisabled ? 1 : 0}, previous_hash = ${previous?.hash ?? null},
             previous_ends_at = ${previous?.endsAt ?? null}, modified_at = ${now}
             WHERE id = ${id}`;
}
