/** The audit log: who changed what, when, from where, and with which outcome. */
import type { AreaModule } from "../area-module.ts";
import { AuditLog, type AuditLogParts } from "./audit-log.ts";
import { AuditReader } from "./audit-reader.ts";
import { auditRoutes } from "./routes.ts";

export { AuditedDatabase } from "./audited-database.ts";

export interface AuditArea extends AreaModule {
  readonly trail: AuditLog;
}

export function createAuditArea(parts: AuditLogParts): AuditArea {
  const trail = new AuditLog(parts);
  return {
    trail,
    mounts: [],
    routes: auditRoutes(new AuditReader(parts.database)),
    start: () => trail.start(),
    stop: () => trail.stop(),
  };
}
