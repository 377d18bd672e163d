/**
 * Which database each part of the service gets. Parts with management writes get the audited one: it stores the entry of the write that runs in the
 * transaction that the write commits first. The others get the plain one: they have no such writes, or record them themselves.
 */
import { AuditedDatabase } from "../audit/index.ts";
import type { Database } from "../database/database.ts";

export type Databases = ReturnType<typeof createDatabases>;

export function createDatabases(plain: Database) {
  const audited: Database = new AuditedDatabase(plain);
  return {
    settings: audited,
    identity: audited,
    gateway: audited,
    webhooks: audited,
    alerts: audited,
    audit: plain,
    // Writes of tags record themselves, in the transaction of their batch.
    tags: plain,
    // Instances have databases of their own.
    agents: plain,
    /** Deliveries of senders. */
    intake: plain,
    callLog: plain,
    backup: plain,
  };
}
