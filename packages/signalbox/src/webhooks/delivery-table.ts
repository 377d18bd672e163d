/** The statements on `webhook_delivery`, the inspector's stored list. */
import type { Database, Queryable, ScanTurn } from "../database/database.ts";
import { RowsStatement } from "../core/rows-statement.ts";
import type { StoredError } from "../core/stored-error.ts";
import { withoutNul } from "../core/without-nul.ts";
import { joinSql, rawSql, sql, sqlList, type SqlQuery, type SqlValue } from "../core/sql.ts";
import type { DeliveryFilter, DeliveryReason, DeliveryRecord, DeliveryStatus } from "./delivery-record.ts";
import type { RejectedRequest } from "./rejected-request.ts";

/** No other area writes the table, so that its writes delay no others. Rows have ids of their own, and one node at a time prunes. */
const SCOPE = { scope: "webhook_delivery", isConcurrent: true };
/** Of one source. Anybody can send them. */
const MAX_REJECTED = 100;
/** Arbitrary key of an advisory lock of PostgreSQL, the same in every version. */
const PRUNE_LOCK = rawSql("SELECT pg_try_advisory_xact_lock(1397161985) AS is_locked");

/** Deliveries that one statement searches, with their bodies: some milliseconds. Between two of them other accounts have their turn. */
const SEARCHED = 200;
const MAX_SEARCH_MS = 3000;

/** A page of a list. */
export interface FoundDeliveries {
  readonly records: readonly DeliveryRecord[];
  /** Where a search that took too long goes on; null if it is complete. */
  readonly position: string | null;
  /** Deliveries that were searched; null without a search. */
  readonly scanned: number | null;
}

export interface SearchLimits {
  readonly searched?: number;
  readonly maxSearchMs?: number;
}

export class DeliveryTable {
  readonly #database: Database;
  readonly #searched: number;
  readonly #maxSearchMs: number;

  constructor(database: Database, { searched = SEARCHED, maxSearchMs = MAX_SEARCH_MS }: SearchLimits = {}) {
    this.#database = database;
    this.#searched = searched;
    this.#maxSearchMs = maxSearchMs;
  }

  /** Inserts records that are not stored yet, and deletes old rejected ones: of each source the newest `keep` stay, at most `MAX_REJECTED`. */
  async insert(records: readonly DeliveryRecord[], keep: number): Promise<void> {
    const values = records.flatMap(toRow);
    const rejected = new Map(
      records
        .filter(({ status }) => status === "rejected")
        .map(({ accountId, source }) => [`${accountId} ${source}`, { accountId, source }]),
    );
    await this.#database.transaction(async (tx) => {
      await INSERT.run(tx, values);
      if (rejected.size === 0 || !(await this.#mayPrune(tx))) return;
      for (const { accountId, source } of rejected.values())
        await pruneRejected(tx, accountId, source, Math.min(keep, MAX_REJECTED));
    }, SCOPE);
  }

  /** Ids of deliveries beside the newest `keep` that ended like that, at most `limit`. */
  async surplus(kind: KeptKind, keep: number, limit: number): Promise<string[]> {
    const rows = await this.#database.scan<{ id: string }>(
      sql`SELECT id FROM webhook_delivery WHERE ${KEPT_KINDS[kind]} ORDER BY id DESC LIMIT ${limit} OFFSET ${keep}`,
      OWN_TURN,
    );
    return rows.map(({ id }) => id);
  }

  async remove(ids: readonly string[]): Promise<void> {
    await this.#database.transaction(async (tx) => {
      // Another node that prunes has found the same ones.
      if (await this.#mayPrune(tx)) await REMOVE.run(tx, ids);
    }, SCOPE);
  }

  /** The failed delivery needs no operator any more. */
  async markReplayed(accountId: string, id: string, at: number): Promise<void> {
    await this.#database.transaction(async (tx) => {
      await tx.run(
        sql`UPDATE webhook_delivery SET replayed_at = ${at} WHERE account_id = ${accountId} AND id = ${id}`,
      );
    }, SCOPE);
  }

  /** By source and status, within the times of the filter. */
  async counts(accountId: string, filter: DeliveryFilter): Promise<StatusCount[]> {
    const rows = await this.#database.scan<StatusCountRow>(
      sql`SELECT source, status, count(*) AS n, max(received_at) AS last_at, max(id) AS last_id FROM webhook_delivery
          WHERE ${joinSql(this.#conditions(accountId, filter), " AND ")} GROUP BY source, status ORDER BY source, status`,
      { account: accountId, kind: "search" },
    );
    return rows.map(({ source, status, n, last_at: lastAt, last_id: lastId }) => ({
      source,
      status,
      count: n,
      lastAt,
      lastId,
    }));
  }

  /** By status and step of time, within the times of the filter. */
  async histogram(
    accountId: string,
    filter: DeliveryFilter,
    stepMs: number,
    signal?: AbortSignal,
  ): Promise<DeliveryStep[]> {
    const steps: DeliveryStep[] = [];
    const where = joinSql(this.#conditions(accountId, filter), " AND ");
    for await (const { range } of this.#ranges(accountId, filter, sql``)) {
      signal?.throwIfAborted();
      const rows = await this.#database.scan<{ step: number; status: DeliveryStatus; n: number }>(
        sql`SELECT received_at / CAST(${stepMs} AS BIGINT) AS step, status, count(*) AS n FROM webhook_delivery
            WHERE ${where} ${range} GROUP BY 1, 2`,
        { account: accountId, kind: "search" },
      );
      steps.push(...rows.map(({ step, status, n }) => ({ at: step * stepMs, status, count: n })));
    }
    return steps;
  }

  /** How many deliveries were rejected beside the listed ones, by source. */
  async alsoRejected(accountId: string, filter: DeliveryFilter): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#database.scan<{ source: string; request: string | null }>(
      sql`SELECT source, request FROM webhook_delivery
          WHERE ${joinSql([...this.#conditions(accountId, filter), sql`status = 'rejected'`], " AND ")}`,
      { account: accountId, kind: "search" },
    );
    const sums = new Map<string, number>();
    for (const { source, request } of rows) {
      const count = request === null ? 0 : (JSON.parse(request) as RejectedRequest).alsoRejected;
      sums.set(source, (sums.get(source) ?? 0) + count);
    }
    return sums;
  }

  #conditions(accountId: string, filter: DeliveryFilter): SqlQuery[] {
    const { search } = filter;
    return search === undefined
      ? conditions(accountId, filter)
      : [...conditions(accountId, filter), contains(search, this.#database.engine)];
  }

  /** False if another node prunes: rows that two transactions delete would make one of them wait. */
  async #mayPrune(tx: Queryable): Promise<boolean> {
    if (this.#database.engine === "sqlite") return true;
    return (await tx.get<{ is_locked: boolean }>(PRUNE_LOCK))?.is_locked === true;
  }

  /** Newest first. A search ends after some seconds. */
  async before(
    accountId: string,
    filter: DeliveryFilter,
    cursor: string | undefined,
    limit: number,
    signal?: AbortSignal,
  ): Promise<FoundDeliveries> {
    const where = joinSql(this.#conditions(accountId, filter), " AND ");
    const records: DeliveryRecord[] = [];
    const endsAt = performance.now() + this.#maxSearchMs;
    let scanned = 0;
    const below = cursor === undefined ? sql`` : sql`AND id < ${cursor}`;
    for await (const { range, last, count } of this.#ranges(accountId, filter, below)) {
      const rows = await this.#database.scan<DeliveryRow>(
        sql`${SELECT} WHERE ${where} ${range} ORDER BY id DESC LIMIT ${limit - records.length}`,
        turnOf(accountId, filter),
      );
      records.push(...rows.map(fromRow));
      scanned += count;
      if (records.length === limit) break;
      if (last !== null && (performance.now() >= endsAt || signal?.aborted === true))
        return { records, position: last, scanned };
    }
    return { records, position: null, scanned: filter.search === undefined ? null : scanned };
  }

  /**
   * What one statement may look at: everything below, or a part of it if the filter searches in bodies, which may be gigabytes. `last`: the oldest id
   * of the part; null if nothing follows.
   */
  async *#ranges(
    accountId: string,
    { search }: DeliveryFilter,
    below: SqlQuery,
  ): AsyncGenerator<{ readonly range: SqlQuery; readonly last: string | null; readonly count: number }> {
    if (search === undefined) return yield { range: below, last: null, count: 0 };
    for (let range = below; ;) {
      const [row] = await this.#database.scan<{ last: string | null; count: number }>(
        sql`SELECT min(id) AS last, count(*) AS count FROM
              (SELECT id FROM webhook_delivery WHERE account_id = ${accountId} ${range} ORDER BY id DESC LIMIT ${this.#searched}) AS part`,
        { account: accountId, kind: "search" },
      );
      const { last, count } = row ?? { last: null, count: 0 };
      if (last === null) return;
      const isLast = count < this.#searched;
      yield { range: sql`${range} AND id >= ${last}`, last: isLast ? null : last, count };
      if (isLast) return;
      range = sql`AND id < ${last}`;
    }
  }

  /** Oldest first. */
  async after(
    accountId: string,
    filter: DeliveryFilter,
    after: string,
    limit: number,
  ): Promise<DeliveryRecord[]> {
    const where = [...this.#conditions(accountId, filter), sql`id > ${after}`];
    const rows = await this.#database.scan<DeliveryRow>(
      sql`${SELECT} WHERE ${joinSql(where, " AND ")} ORDER BY id LIMIT ${limit}`,
      turnOf(accountId, filter),
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

  /** As `find`. */
  async findAll(accountId: string, ids: readonly string[]): Promise<DeliveryRecord[]> {
    if (ids.length === 0) return [];
    const rows = await this.#database.all<DeliveryRow>(
      sql`SELECT * FROM webhook_delivery WHERE account_id = ${accountId} AND id IN (${sqlList(ids)})`,
    );
    return rows.map(fromRow);
  }
}

/** A list without filters, or of failed or rejected deliveries, which have indexes, reads what it shows. */
function turnOf(account: string, { status, ...others }: DeliveryFilter): ScanTurn {
  const hasIndex = status === undefined || status === "failed" || status === "rejected";
  const isPage = hasIndex && Object.values(others).every((value) => value === undefined);
  return { account, kind: isPage ? "page" : "search" };
}

/** Of the retention. */
const OWN_TURN: ScanTurn = { account: "", kind: "search" };

/** What one status of one source amounts to. */
export interface StatusCount {
  readonly source: string;
  readonly status: DeliveryStatus;
  readonly count: number;
  /** Time of arrival and id of the last one. */
  readonly lastAt: number;
  readonly lastId: string;
}

/** Deliveries of one status that arrived within one step of time. */
export interface DeliveryStep {
  /** The beginning of the step. */
  readonly at: number;
  readonly status: DeliveryStatus;
  readonly count: number;
}

interface StatusCountRow {
  readonly source: string;
  readonly status: DeliveryStatus;
  readonly n: number;
  readonly last_at: number;
  readonly last_id: string;
}

/** Deliveries of which the newest so many are kept, each kind by itself: a flood of one kind displaces no other. */
export type KeptKind = "succeeded" | "failed";

const KEPT_KINDS: Readonly<Record<KeptKind, SqlQuery>> = {
  succeeded: rawSql("status IN ('accepted', 'duplicate')"),
  failed: rawSql("status = 'failed'"),
};

/** Constants, because an index of the rows of one status is not used for a value that is bound. */
const OF_STATUS: Readonly<Record<DeliveryStatus, SqlQuery>> = {
  accepted: rawSql("status = 'accepted'"),
  duplicate: rawSql("status = 'duplicate'"),
  rejected: rawSql("status = 'rejected'"),
  failed: rawSql("status = 'failed'"),
};

async function pruneRejected(tx: Queryable, accountId: string, source: string, keep: number): Promise<void> {
  const own = sql`account_id = ${accountId} AND source = ${source} AND status = 'rejected'`;
  await tx.run(
    sql`DELETE FROM webhook_delivery WHERE ${own} AND id <=
          (SELECT id FROM webhook_delivery WHERE ${own} ORDER BY id DESC LIMIT 1 OFFSET ${keep})`,
  );
}

const REMOVE = new RowsStatement("DELETE FROM webhook_delivery WHERE id IN (VALUES ", 1, ")");

const INSERT = new RowsStatement(
  `INSERT INTO webhook_delivery (id, account_id, source, status, reason, http_status, received_at, duration_ms, delivery_id, type, title,
     agent, instance, content_type, headers, body_bytes, body, error, request, replayed_at) VALUES `,
  20,
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
    // The payload may have any characters.
    withoutNul(record.deliveryId),
    withoutNul(record.type),
    withoutNul(record.title),
    record.agent,
    record.instance,
    record.contentType,
    JSON.stringify(record.headers),
    record.bodyBytes,
    record.body,
    record.error === null ? null : JSON.stringify(record.error),
    record.request === null ? null : JSON.stringify(record.request),
    record.replayedAt,
  ];
}

const SELECT = sql`SELECT id, account_id, source, status, reason, http_status, received_at, duration_ms, delivery_id, type, title,
                          agent, instance, content_type, headers, body_bytes, error, replayed_at FROM webhook_delivery`;

function conditions(accountId: string, filter: DeliveryFilter): SqlQuery[] {
  const where = [sql`account_id = ${accountId}`];
  if (filter.source !== undefined) where.push(sql`source = ${filter.source}`);
  if (filter.status !== undefined) where.push(OF_STATUS[filter.status]);
  if (filter.instance !== undefined) where.push(sql`instance = ${filter.instance}`);
  if (filter.type !== undefined) where.push(sql`type = ${filter.type}`);
  if (filter.deliveryId !== undefined) where.push(sql`delivery_id = ${filter.deliveryId}`);
  if (filter.reason !== undefined) where.push(sql`reason = ${filter.reason}`);
  if (filter.since !== undefined) where.push(sql`received_at >= ${filter.since}`);
  if (filter.until !== undefined) where.push(sql`received_at < ${filter.until}`);
  if (filter.isUnresolved === true) where.push(UNRESOLVED);
  return where;
}

/** Both databases compare bytes in a body, each with a function of its own. */
function contains(search: string, engine: Database["engine"]): SqlQuery {
  const text = `%${withoutNul(search.toLowerCase()).replaceAll(/[\\%_]/g, (character) => `\\${character}`)}%`;
  const bytes = Buffer.from(search);
  const inBody =
    engine === "sqlite" ? sql`instr(body, ${bytes}) > 0` : sql`position(CAST(${bytes} AS BYTEA) IN body) > 0`;
  const inText = ["id", "instance", "delivery_id", "type", "title"].map(
    (column) => sql`lower(${rawSql(column)}) LIKE ${text} ESCAPE '\\'`,
  );
  return sql`(${joinSql([...inText, inBody], " OR ")})`;
}

const UNRESOLVED = sql`status = 'failed' AND replayed_at IS NULL AND NOT EXISTS (
  SELECT 1 FROM webhook_delivery later
  WHERE later.account_id = webhook_delivery.account_id AND later.source = webhook_delivery.source
    AND later.delivery_id = webhook_delivery.delivery_id AND later.id > webhook_delivery.id
    AND later.status IN ('accepted', 'duplicate'))`;

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
  readonly error: string | null;
  readonly request?: string | null;
  readonly replayed_at: number | null;
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
    error: row.error === null ? null : (JSON.parse(row.error) as StoredError),
    request: row.request == null ? null : (JSON.parse(row.request) as RejectedRequest),
    replayedAt: row.replayed_at,
  };
}
