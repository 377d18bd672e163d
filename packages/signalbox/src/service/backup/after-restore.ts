/**
 * What a restored database must not continue with: it was written by processes that do not exist any more.
 *
 * - Sessions of the dashboard and login links end.
 * - Late deliveries are tried at once: the attempt of a dead process is not waited for.
 * - The copying of calls to S3 has no holder.
 * - Instances belong to no node.
 */
import { rawSql, sql } from "../../core/sql.ts";
import type { Queryable } from "../../core/queryable.ts";

export async function endFormerProcesses(tx: Queryable, now: number): Promise<void> {
  await tx.run(rawSql("DELETE FROM dashboard_session"));
  await tx.run(rawSql("DELETE FROM login_code"));
  await tx.run(
    sql`UPDATE webhook_late_delivery SET next_attempt_at = ${now}, node = NULL WHERE next_attempt_at IS NOT NULL`,
  );
  await tx.run(rawSql("UPDATE log_push SET holder = '', held_until = 0"));
  await tx.run(rawSql("UPDATE agent_instance SET node = 0 WHERE node IS NOT NULL"));
}
