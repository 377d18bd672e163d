/** One row of the audit log, and the chain that its hashes form. */
import { hash } from "node:crypto";
import type { WriteFacts, WriteResult } from "../contracts/audit-trail.ts";
import type { SqlValue } from "../core/sql.ts";
import { SecretHider } from "./hide-secrets.ts";

/** The columns of `audit_entry` besides `account_id`, `seq`, `entry` and `hash`, and the members of the entry that do not depend on the chain. */
export interface EntryDraft {
  readonly id: string;
  readonly at: number;
  readonly facts: WriteFacts;
  readonly result: WriteResult;
}

/** The place of an entry in the chain of its account. */
export interface ChainPlace {
  readonly seq: number;
  /** Hash of the entry before it; `FIRST_HASH` for the first. */
  readonly previousHash: string;
}

export const FIRST_HASH: string = "0".repeat(64);

export const ENTRY_COLUMNS =
  "account_id, seq, at, id, actor, action, outcome, resource_type, resource_id, request_id, entry, hash";
export const ENTRY_COLUMN_COUNT = 12;

export interface ChainedEntry {
  readonly values: readonly SqlValue[];
  readonly hash: string;
}

export function chainEntry(draft: EntryDraft, place: ChainPlace): ChainedEntry {
  const { facts, result, id, at } = draft;
  const { actor } = facts;
  const hider = new SecretHider();
  const [request, before, after] = hider.hide(result.request, result.before, result.after);
  const resourceId =
    result.resourceId === undefined ? hider.hideText(facts.resourceId) : hider.hideMessage(result.resourceId);
  const text = (value: string | null) => (value === null ? null : hider.hideText(value));
  // The order of the members is part of the format: the hash is that of this text.
  const head = JSON.stringify({
    seq: place.seq,
    id,
    when: new Date(at).toISOString(),
    account_id: facts.accountId === "" ? null : facts.accountId,
    action: {
      type: facts.action,
      result: result.outcome === "success",
      outcome: result.outcome,
      status: result.status,
      code: result.code,
      message: result.message === null ? null : hider.hideMessage(result.message),
    },
    actor: { type: actor.type, id: actor.id, name: text(actor.name), session: actor.session, ip: actor.ip },
    operation: facts.operation,
    resource: { type: facts.resourceType, id: resourceId, path: text(facts.path) },
    request_id: facts.requestId,
    metadata: { user_agent: text(facts.userAgent), forwarded_for: text(facts.forwardedFor) },
  });
  const entry = `${head.slice(0, -1)},"request":${request},"before":${before},"after":${after},"previous_hash":"${place.previousHash}"}`;
  const ownHash = hashEntry(entry);
  return {
    hash: ownHash,
    values: [
      facts.accountId,
      place.seq,
      at,
      id,
      actor.id === "" ? actor.type : actor.id,
      facts.action,
      result.outcome,
      facts.resourceType,
      resourceId,
      facts.requestId,
      entry,
      ownHash,
    ],
  };
}

export function hashEntry(entry: string): string {
  return hash("sha256", entry, "hex");
}

/** Returns the JSON text of an entry with its hash. Without the last member it is the text that was hashed. */
export function withHash(entry: string, ownHash: string): string {
  return `${entry.slice(0, -1)},"hash":"${ownHash}"}`;
}
