/** The audit log: who changed what, when, from where, and with which outcome. */
import type { AreaModule } from "../area-module.ts";
import type { Database } from "../database/database.ts";
import { AuditLog, type AuditLogParts } from "./audit-log.ts";
import { AuditReader } from "./audit-reader.ts";
import { AuditedDatabase } from "./audited-database.ts";
import { auditRoutes } from "./routes.ts";

export { AuditedDatabase };

export interface AuditArea extends AreaModule {
  readonly trail: AuditLog;
  /** The database for code that handles management writes. */
  readonly database: Database;
}

export function createAuditArea(parts: AuditLogParts): AuditArea {
  const trail = new AuditLog(parts);
  return {
    trail,
    database: new AuditedDatabase(parts.database),
    mounts: [],
    routes: auditRoutes(new AuditReader(parts.database)),
    start: () => trail.start(),
    stop: () => trail.stop(),
  };
}
