/** Opens the audit log with the settings of the configuration. */
import { type AuditArea, createAuditArea } from "../audit/index.ts";
import type { Config } from "../config/index.ts";
import type { Clock } from "../core/clock.ts";
import type { Database } from "../database/database.ts";
import type { Logger } from "../telemetry/logger.ts";

export function openAudit(
  { file: { audit, listener } }: Config,
  database: Database,
  clock: Clock,
  logger: Logger,
): AuditArea {
  return createAuditArea({
    database,
    clock,
    retention: audit,
    trustedProxies: [...listener.trustedProxies, ...audit.trustedProxies],
    onError: (error) => logger.error({ err: error }, "audit log: cannot write"),
  });
}
