/** The statements on `webhook_late_delivery`: deliveries that were answered 202 before their instance had handled them. */
import type { Database } from "../database/database.ts";
import { RowsStatement } from "../core/rows-statement.ts";
import { sql, sqlList, type SqlQuery } from "../core/sql.ts";

export interface LateDelivery {
  /** ULID; deliveries are attempted in this order. */
  readonly id: string;
  readonly accountId: string;
  readonly source: string;
  readonly agent: string;
  readonly instance: string;
  /** The provider's id, by which the instance's ledger knows the delivery. */
  readonly deliveryId: string;
  /** Milliseconds since the epoch. */
  readonly receivedAt: number;
  readonly contentType: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** The signed bytes. */
  readonly body: Uint8Array;
}

/** A row without its body. */
export interface LateDeliveryState extends Omit<LateDelivery, "body"> {
  readonly bodyBytes: number;
  /** Attempts that failed. */
  readonly attempts: number;
  /** Milliseconds since the epoch; null when no more attempts are made. */
  readonly nextAttemptAt: number | null;
  readonly lastError: string | null;
}

const INSERT = new RowsStatement(
  `INSERT INTO webhook_late_delivery (id, account_id, source, agent, instance, delivery_id, received_at, content_type, headers,
     body_bytes, body, attempts, next_attempt_at, node) VALUES `,
  14,
  "",
);
const DELETE = new RowsStatement("DELETE FROM webhook_late_delivery WHERE (id) IN (VALUES ", 1, ")");

/** Rows are inserted and deleted by their ids, which no two nodes share. */
const SCOPE = { scope: "webhook_late_delivery", isConcurrent: true };

const COLUMNS = sql`id, account_id, source, agent, instance, delivery_id, received_at, content_type, headers, body_bytes, attempts,
                    next_attempt_at, last_error`;

export class LateDeliveryTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** All or none. `node` attempts them now; null for a process that is alone. */
  async insert(
    deliveries: readonly LateDelivery[],
    nextAttemptAt: number,
    node: string | null = null,
  ): Promise<void> {
    const values = deliveries.flatMap((delivery) => [
      delivery.id,
      delivery.accountId,
      delivery.source,
      delivery.agent,
      delivery.instance,
      delivery.deliveryId,
      delivery.receivedAt,
      delivery.contentType,
      JSON.stringify(delivery.headers),
      delivery.body.length,
      delivery.body,
      0,
      nextAttemptAt,
      node === null ? null : BigInt(node),
    ]);
    await this.#runAll(INSERT.queries(values));
  }

  /** All or none. Unknown ids are ignored. */
  async remove(ids: readonly string[]): Promise<void> {
    await this.#runAll(DELETE.queries(ids));
  }

  /** Schedules the next attempt, or none if `nextAttemptAt` is null. `attempts` have failed so far. */
  async postpone(id: string, attempts: number, nextAttemptAt: number | null, error: string): Promise<void> {
    await this.#run(
      sql`UPDATE webhook_late_delivery SET attempts = ${attempts}, next_attempt_at = ${nextAttemptAt}, last_error = ${error},
            node = NULL
          WHERE id = ${id}`,
    );
  }

  /** Gives a node the attempt until the given time, unless another one has taken or postponed it since the row was read: false then. */
  async take(
    { id, nextAttemptAt }: Pick<LateDeliveryState, "id" | "nextAttemptAt">,
    until: number,
    node: string,
  ): Promise<boolean> {
    const { changes } = await this.#run(
      sql`UPDATE webhook_late_delivery SET next_attempt_at = ${until}, node = ${BigInt(node)}
          WHERE id = ${id} AND next_attempt_at = ${nextAttemptAt}`,
    );
    return changes === 1;
  }

  /** The attempts of a node that stops are due, for any node. */
  async giveBack(node: string, now: number): Promise<void> {
    await this.#run(
      sql`UPDATE webhook_late_delivery SET next_attempt_at = ${now}, node = NULL
          WHERE node = ${BigInt(node)} AND next_attempt_at IS NOT NULL`,
    );
  }

  /** Makes all waiting deliveries due. */
  async hasten(now: number): Promise<void> {
    await this.#run(
      sql`UPDATE webhook_late_delivery SET next_attempt_at = ${now}, node = NULL WHERE next_attempt_at > ${now}`,
    );
  }

  /** Schedules a delivery that was given up; false when there is none. */
  async revive(accountId: string, id: string, now: number): Promise<boolean> {
    const { changes } = await this.#run(
      sql`UPDATE webhook_late_delivery SET attempts = 0, next_attempt_at = ${now}
          WHERE account_id = ${accountId} AND id = ${id} AND next_attempt_at IS NULL`,
    );
    return changes === 1;
  }

  /** The oldest due delivery of each instance, oldest first. In a cluster also those whose node is none of `others`, the other living nodes. */
  async due(now: number, limit: number, others: readonly string[] | null): Promise<LateDeliveryState[]> {
    const living = others?.map((node) => BigInt(node)) ?? [];
    const isLeft =
      others === null
        ? sql``
        : sql`OR (node IS NOT NULL AND next_attempt_at IS NOT NULL ${living.length === 0 ? sql`` : sql`AND node NOT IN (${sqlList(living)})`})`;
    const rows = await this.#database.all<LateDeliveryRow>(
      sql`SELECT ${COLUMNS} FROM webhook_late_delivery WHERE id IN
            (SELECT min(id) FROM webhook_late_delivery WHERE next_attempt_at <= ${now} ${isLeft}
             GROUP BY account_id, agent, instance)
          ORDER BY id LIMIT ${limit}`,
    );
    return rows.map(fromRow);
  }

  /** The time of the next attempt after `now`, or null. */
  async nextAfter(now: number): Promise<number | null> {
    const row = await this.#database.get<{ at: number | null }>(
      sql`SELECT min(next_attempt_at) AS at FROM webhook_late_delivery WHERE next_attempt_at > ${now}`,
    );
    return row?.at ?? null;
  }

  async body(id: string): Promise<Uint8Array | undefined> {
    const row = await this.#database.get<{ body: Uint8Array }>(
      sql`SELECT body FROM webhook_late_delivery WHERE id = ${id}`,
    );
    return row?.body;
  }

  /** Newest first, before `cursor`. */
  async list(accountId: string, cursor: string | undefined, limit: number): Promise<LateDeliveryState[]> {
    const before = cursor === undefined ? sql`1 = 1` : sql`id < ${cursor}`;
    const rows = await this.#database.all<LateDeliveryRow>(
      sql`SELECT ${COLUMNS} FROM webhook_late_delivery WHERE account_id = ${accountId} AND ${before} ORDER BY id DESC LIMIT ${limit}`,
    );
    return rows.map(fromRow);
  }

  async find(accountId: string, id: string): Promise<LateDeliveryState | undefined> {
    const row = await this.#database.get<LateDeliveryRow>(
      sql`SELECT ${COLUMNS} FROM webhook_late_delivery WHERE account_id = ${accountId} AND id = ${id}`,
    );
    return row === undefined ? undefined : fromRow(row);
  }

  async totals(): Promise<{ count: number; bytes: number }> {
    const row = await this.#database.get<{ count: number; bytes: number }>(
      sql`SELECT count(*) AS count, CAST(coalesce(sum(body_bytes), 0) AS BIGINT) AS bytes FROM webhook_late_delivery`,
    );
    return row ?? { count: 0, bytes: 0 };
  }

  #run(query: SqlQuery): Promise<{ changes: number }> {
    return this.#database.transaction((tx) => tx.run(query), SCOPE);
  }

  async #runAll(queries: readonly SqlQuery[]): Promise<void> {
    await this.#database.transaction(async (tx) => {
      for (const query of queries) await tx.run(query);
    }, SCOPE);
  }
}

interface LateDeliveryRow {
  readonly id: string;
  readonly account_id: string;
  readonly source: string;
  readonly agent: string;
  readonly instance: string;
  readonly delivery_id: string;
  readonly received_at: number;
  readonly content_type: string | null;
  readonly headers: string;
  readonly body_bytes: number;
  readonly attempts: number;
  readonly next_attempt_at: number | null;
  readonly last_error: string | null;
}

function fromRow(row: LateDeliveryRow): LateDeliveryState {
  return {
    id: row.id,
    accountId: row.account_id,
    source: row.source,
    agent: row.agent,
    instance: row.instance,
    deliveryId: row.delivery_id,
    receivedAt: row.received_at,
    contentType: row.content_type,
    headers: JSON.parse(row.headers) as Record<string, string>,
    bodyBytes: row.body_bytes,
    attempts: row.attempts,
    nextAttemptAt: row.next_attempt_at,
    lastError: row.last_error,
  };
}
