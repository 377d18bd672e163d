/** The statements on `webhook_delivery`, the inspector's stored list. */
import type { Database, Queryable } from "../database/database.ts";
import { RowsStatement } from "../core/rows-statement.ts";
import { joinSql, rawSql, sql, type SqlQuery, type SqlValue } from "../core/sql.ts";
import type { DeliveryFilter, DeliveryReason, DeliveryRecord, DeliveryStatus } from "./delivery-record.ts";

/** No other area writes the table, so that its writes delay no others. Rows have ids of their own, and one node at a time prunes. */
const SCOPE = { scope: "webhook_delivery", isConcurrent: true };
/** Arbitrary key of an advisory lock of PostgreSQL, the same in every version. */
const PRUNE_LOCK = rawSql("SELECT pg_try_advisory_xact_lock(1397161985) AS is_locked");

export class DeliveryTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Inserts records that are not stored yet, and deletes all but the newest `keep`. */
  async insert(records: readonly DeliveryRecord[], keep: number): Promise<void> {
    const values = records.flatMap(toRow);
    await this.#database.transaction(async (tx) => {
      await INSERT.run(tx, values);
      if (!(await this.#mayPrune(tx))) return;
      await tx.run(
        sql`DELETE FROM webhook_delivery WHERE id <=
              (SELECT id FROM webhook_delivery ORDER BY id DESC LIMIT 1 OFFSET ${keep})`,
      );
    }, SCOPE);
  }

  /** False if another node prunes: rows that two transactions delete would make one of them wait. */
  async #mayPrune(tx: Queryable): Promise<boolean> {
    if (this.#database.engine === "sqlite") return true;
    return (await tx.get<{ is_locked: boolean }>(PRUNE_LOCK))?.is_locked === true;
  }

  /** Newest first. */
  async before(
    accountId: string,
    filter: DeliveryFilter,
    cursor: string | undefined,
    limit: number,
  ): Promise<DeliveryRecord[]> {
    const where = conditions(accountId, filter);
    if (cursor !== undefined) where.push(sql`id < ${cursor}`);
    const rows = await this.#database.all<DeliveryRow>(
      sql`${SELECT} WHERE ${joinSql(where, " AND ")} ORDER BY id DESC LIMIT ${limit}`,
    );
    return rows.map(fromRow);
  }

  /** Oldest first. */
  async after(
    accountId: string,
    filter: DeliveryFilter,
    after: string,
    limit: number,
  ): Promise<DeliveryRecord[]> {
    const where = [...conditions(accountId, filter), sql`id > ${after}`];
    const rows = await this.#database.all<DeliveryRow>(
      sql`${SELECT} WHERE ${joinSql(where, " AND ")} ORDER BY id LIMIT ${limit}`,
    );
    return rows.map(fromRow);
  }

  /** With the body, which lists omit. */
  async find(accountId: string, id: string): Promise<DeliveryRecord | undefined> {
    const row = await this.#database.get<DeliveryRow>(
      sql`SELECT * FROM webhook_delivery WHERE account_id = ${accountId} AND id = ${id}`,
    );
    return row === undefined ? undefined : fromRow(row);
  }
}

const INSERT = new RowsStatement(
  `INSERT INTO webhook_delivery (id, account_id, source, status, reason, http_status, received_at, duration_ms, delivery_id, type, title,
     agent, instance, content_type, headers, body_bytes, body) VALUES `,
  17,
  " ON CONFLICT (id) DO NOTHING",
);

function toRow(record: DeliveryRecord): SqlValue[] {
  return [
    record.id,
    record.accountId,
    record.source,
    record.status,
    record.reason,
    record.httpStatus,
    record.receivedAt,
    Math.round(record.durationMs),
    record.deliveryId,
    record.type,
    record.title,
    record.agent,
    record.instance,
    record.contentType,
    JSON.stringify(record.headers),
    record.bodyBytes,
    record.body,
  ];
}

const SELECT = sql`SELECT id, account_id, source, status, reason, http_status, received_at, duration_ms, delivery_id, type, title,
                          agent, instance, content_type, headers, body_bytes FROM webhook_delivery`;

function conditions(accountId: string, filter: DeliveryFilter): SqlQuery[] {
  const where = [sql`account_id = ${accountId}`];
  if (filter.source !== undefined) where.push(sql`source = ${filter.source}`);
  if (filter.status !== undefined) where.push(sql`status = ${filter.status}`);
  if (filter.instance !== undefined) where.push(sql`instance = ${filter.instance}`);
  if (filter.type !== undefined) where.push(sql`type = ${filter.type}`);
  if (filter.deliveryId !== undefined) where.push(sql`delivery_id = ${filter.deliveryId}`);
  return where;
}

interface DeliveryRow {
  readonly id: string;
  readonly account_id: string;
  readonly source: string;
  readonly status: DeliveryStatus;
  readonly reason: DeliveryReason | null;
  readonly http_status: number;
  readonly received_at: number;
  readonly duration_ms: number;
  readonly delivery_id: string;
  readonly type: string;
  readonly title: string;
  readonly agent: string;
  readonly instance: string;
  readonly content_type: string | null;
  readonly headers: string;
  readonly body_bytes: number;
  readonly body?: Uint8Array | null;
}

function fromRow(row: DeliveryRow): DeliveryRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    source: row.source,
    status: row.status,
    reason: row.reason,
    httpStatus: row.http_status,
    receivedAt: row.received_at,
    durationMs: row.duration_ms,
    deliveryId: row.delivery_id,
    type: row.type,
    title: row.title,
    agent: row.agent,
    instance: row.instance,
    contentType: row.content_type,
    headers: JSON.parse(row.headers) as Record<string, string>,
    bodyBytes: row.body_bytes,
    body: row.body ?? null,
  };
}
