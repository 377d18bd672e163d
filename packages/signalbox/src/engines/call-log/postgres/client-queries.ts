/** A connection of the driver as a `Queryable`, so that statements of the main thread and of the writer's thread are the same. */
import type { Client, QueryResult } from "pg";
import type { Queryable } from "../../../core/queryable.ts";
import type { SqlQuery, SqlValue } from "../../../core/sql.ts";

export function asQueryable(client: Client): Queryable {
  const query = ({ parts, values }: SqlQuery): Promise<QueryResult> =>
    client.query(
      parts.reduce((text, part, i) => (i === 0 ? part : `${text}$${i}${part}`), ""),
      values as SqlValue[],
    );
  return {
    all: async <Row>(text: SqlQuery) => (await query(text)).rows as Row[],
    get: async <Row>(text: SqlQuery) => (await query(text)).rows[0] as Row | undefined,
    run: async (text) => ({ changes: (await query(text)).rowCount ?? 0 }),
  };
}
