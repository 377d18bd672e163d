/** Records a batch of tag writes in the audit log, in the transaction of the batch. */
import type { AuditTrail, PendingWrite } from "../../contracts/audit-trail.ts";
import type { Queryable } from "../../database/database.ts";
import type { TaggedResource } from "./resource-row.ts";
import type { TagWrite } from "./tag-write.ts";
import type { BatchResult } from "./write-batch.ts";

export interface AuditedTagWrite {
  readonly write: TagWrite;
  readonly audited: PendingWrite | undefined;
}

/** A write that is not the whole of its request gets a claim: the entry follows when all parts are done. */
export function isPart({ isPart: part, action }: TagWrite): boolean {
  return part === true || action === "resource_deleted";
}

export async function recordBatch(
  tx: Queryable,
  audit: Pick<AuditTrail, "recordIn">,
  writes: readonly AuditedTagWrite[],
  { outcomes, previous }: BatchResult,
): Promise<void> {
  const changes = [];
  const claims = new Set<PendingWrite>();
  for (const [i, { write, audited }] of writes.entries()) {
    const outcome = outcomes[i];
    if (audited === undefined || outcome === undefined || outcome.kind === "refused") continue;
    if (isPart(write)) {
      if (!audited.isClaimed) claims.add(audited);
      continue;
    }
    const change = {
      resourceId: `${write.resource.type}/${write.resource.id}`,
      before: shown(previous[i] ?? null),
      after: shown(outcome.kind === "stored" ? outcome.resource : null),
    };
    changes.push({ write: audited, change });
  }
  if (changes.length > 0) await audit.recordIn(tx, changes);
  for (const claim of claims) await claim.claimIn(tx);
}

function shown(resource: TaggedResource | null): unknown {
  if (resource === null) return null;
  return { name: resource.name, tags: JSON.parse(resource.tags) as unknown };
}
