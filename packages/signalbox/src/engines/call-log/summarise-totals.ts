/** Answers usage by whom from the totals of the day files. */
import { sql, sqlList, rawSql } from "../../core/sql.ts";
import { DAY_MS, startOfDay } from "./day-files.ts";
import { hasUncounted } from "./day-totals.ts";
import type { DayFiles } from "./scan-files.ts";
import { MORE_KEYS } from "./totals-dimension.ts";
import { type KeptDimension, planTotals, TotalsQuery, type TotalsRow } from "./totals-query.ts";
import type { UsageBy, UsageByQuery } from "./usage-by.ts";

/** Null if the rows have to be read: for what totals do not tell apart, and while calls are not part of them. */
export function summariseTotals(files: DayFiles, query: UsageByQuery): UsageBy | null {
  const plan = planTotals(query);
  if (plan === null) return null;
  const { from, to, firstDay, endDay, dimension } = plan;
  const gateways =
    query.gatewayIds === null ? rawSql("") : sql` AND gateway.gateway_id IN (${sqlList(query.gatewayIds)})`;
  const own = sql`gateway.account_id = ${query.accountId}${gateways}`;
  const isPart = sql`dimension IN (${sqlList(plan.dimensions)})`;
  const rows: TotalsRow[] = [];
  const kept: KeptDimension[] = [];
  for (const day of files.days()) {
    // The id decides the file and `createdAt` the hour of a call; midnight can lie between the two.
    const start = startOfDay(day);
    if (start + 2 * DAY_MS <= from || start - DAY_MS >= to) continue;
    const connection = files.open(day);
    if (connection === undefined) continue;
    if (hasUncounted(connection)) return null;
    kept.push(
      ...connection.all<KeptDimension>(sql`
        SELECT gateway.gateway_id, time, dimension FROM totals JOIN gateway ON gateway.key = totals.gateway
        WHERE dimension IN (${dimension}, ${MORE_KEYS}) AND is_day = 1 AND ${own}`),
    );
    // One statement: a merge between two would be seen twice, or not at all.
    rows.push(
      ...connection.all<TotalsRow>(sql`
        SELECT gateway.gateway_id, time, dimension, bytes FROM totals JOIN gateway ON gateway.key = totals.gateway
        WHERE ${isPart} AND ${own} AND (
          (is_day = 1 AND time >= ${firstDay} AND time < ${endDay})
          OR (is_day = 0 AND time >= ${from} AND time < ${to} AND NOT (time >= ${firstDay} AND time < ${endDay})))
        UNION ALL
        SELECT gateway.gateway_id, hour, dimension, bytes FROM totals_delta JOIN gateway ON gateway.key = totals_delta.gateway
        WHERE ${isPart} AND ${own} AND hour >= ${from} AND hour < ${to}`),
    );
  }
  const sum = new TotalsQuery(query, plan, kept);
  for (const row of rows) sum.add(row);
  sum.rank();
  for (let i = 0; i < sum.parts; i++) sum.sum(i);
  return sum.finish();
}
