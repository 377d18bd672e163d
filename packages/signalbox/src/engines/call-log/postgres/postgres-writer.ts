/**
 * Writes calls into PostgreSQL. Runs in the writer's thread; operations other than `expire` do not overlap.
 *
 * Invariants:
 * 1. A row is written and counted once. The position of the queue up to which rows are written is a row of `call_log_writer` and changes in the
 *    transaction that writes them. After a lost connection, rows up to the position are skipped. Ids are unique besides.
 * 2. Any failure ends the connection. An operation that fails on a connection that was open before is tried once more on a new one.
 */
import type { Client } from "pg";
import { retry } from "../../../core/retry.ts";
import { isLocked, isUnavailable } from "../../postgres-session/index.ts";
import type { CallQuota, GatewayRef } from "../call-log.ts";
import { DAY_MS } from "../day-files.ts";
import { keyOf } from "../gateway-rows.ts";
import { MAX_DELTAS } from "../merge-totals.ts";
import { packedHeads } from "../packed-row.ts";
import type { RowBatch } from "../row-batch.ts";
import type { RemovedForSize } from "../worker-messages.ts";
import { BinaryRows } from "./binary-copy.ts";
import { type DayStart, dayStartOf, startOfDayAt } from "./days.ts";
import { Flush } from "./flush.ts";
import { Partitions } from "./partitions.ts";
import { countStoredCalls, mergeTotals } from "./totals-tables.ts";
import { Trim } from "./trim.ts";
import { WriterConnection, type WriterConnectionOptions } from "./writer-connection.ts";

/** Of processes that have ended. */
const MAX_WRITER_AGE = "30 days";
/**
 * A removal deletes the figures of whole days. The lock that it holds belongs to the session: if this process stops in the middle, another node may go on
 * after the idle time.
 */
const MAINTENANCE = { statementMs: 60_000, settings: ["idle_session_timeout=10000"] };
/** About as long as the control plane waits for a server: a node may start during a failover. */
const RETRY = { maxAttempts: 12, baseDelayMs: 100, maxDelayMs: 1000, isRetryable: isUnavailable };
const UNIQUE_VIOLATION = "23505";
/** A row without a partition: another node has removed it. */
const CHECK_VIOLATION = "23514";

export interface PostgresWriterOptions extends WriterConnectionOptions {
  readonly maxBodyBytes: number;
  readonly maxTotalBytes: number;
  readonly usageTotals: boolean;
}

/** Consecutive rows of the queue; `position` is that of the last one. */
export interface PositionedBatch {
  readonly batch: RowBatch;
  readonly position: number;
}

export class PostgresWriter {
  readonly #options: PostgresWriterOptions;
  readonly #connection: WriterConnection;
  readonly #maintenance: WriterConnection;
  readonly #partitions = new Partitions();
  readonly #encoder = new BinaryRows();
  readonly #trim: Trim;
  readonly #gatewayKeys = new Map<string, number>();
  readonly #quotas = new Map<string, CallQuota>();
  /** Of the totals, that this node has added since it merged them. */
  #deltas = 0;
  /** No stored call was found that is not part of the totals, or totals are switched off. */
  #isRebuilt: boolean;
  /** Null until it was read from the database. */
  #position: number | null = null;

  constructor(options: PostgresWriterOptions) {
    this.#options = options;
    this.#isRebuilt = !options.usageTotals;
    this.#connection = new WriterConnection(options);
    this.#maintenance = new WriterConnection({
      ...options,
      ...MAINTENANCE,
      writerId: `${options.writerId} days`,
    });
    this.#trim = new Trim(options.maxTotalBytes);
  }

  get bytes(): number {
    return this.#trim.bytes;
  }

  get removed(): RemovedForSize {
    return this.#trim.removed;
  }

  async write(batches: readonly PositionedBatch[]): Promise<void> {
    await this.#use(async (client) => {
      const position = await this.#readPosition(client);
      const fresh = batches.filter((batch) => batch.position > position);
      const last = fresh.at(-1)?.position;
      if (last === undefined) return;
      const rows = fresh.map(({ batch }) => batch);
      const gatewayKeys = await this.#prepare(client, rows);
      await this.#writeOnce(client, { from: position, to: last }, rows, gatewayKeys);
      this.#position = last;
      for (const name of gatewayKeys.keys()) this.#trim.check(name);
    });
  }

  /**
   * Applies `deleteOldest` quotas and the size limit, merges totals, and counts calls that were stored while totals were switched off: at most a
   * chunk of each. True if more is left.
   */
  trim(): Promise<boolean> {
    return this.#use(async (client) => {
      if (this.#deltas >= MAX_DELTAS) {
        await mergeTotals(client);
        this.#deltas = 0;
      }
      // Counted before they may be deleted.
      const isMoreToCount = this.#isRebuilt ? false : await countStoredCalls(client);
      if (isMoreToCount === false) this.#isRebuilt = true;
      return (await this.#trim.run(client, this.#quotas)) || isMoreToCount === true;
    });
  }

  /** `trim` applies it to the rows that are stored. */
  setQuota(gateway: GatewayRef, quota: CallQuota | null): void {
    const name = keyOf(gateway);
    if (quota === null) this.#quotas.delete(name);
    else this.#quotas.set(name, quota);
    this.#trim.check(name);
  }

  /**
   * Removes the days that ended more than `maxAgeDays` before `time`, and creates the partitions of today and tomorrow. Without a time the clock of
   * PostgreSQL counts: a node with a wrong one must not remove the calls of all nodes. On a connection of its own: a partition is detached only
   * when no transaction uses it any more, which must not delay the calls. A removal that finds such a transaction is left to the next hour.
   */
  async expire(time: number | null, maxAgeDays: number): Promise<void> {
    // A node whose totals are switched off may have stored calls since.
    this.#isRebuilt = !this.#options.usageTotals;
    const { client } = await retry(() => this.#maintenance.get(), RETRY);
    try {
      const now = time ?? (await readClock(client));
      const today = startOfDayAt(now);
      await this.#partitions.ensure(client, [today, today + DAY_MS]);
      await this.#partitions.removeBefore(client, now - maxAgeDays * DAY_MS).catch((error: unknown) => {
        // For example a backup, which reads for hours: the start of a node does not wait for it.
        if (!isLocked(error)) throw error;
      });
      await client.query(
        `DELETE FROM call_log_writer WHERE seen_at < now() - interval '${MAX_WRITER_AGE}' AND writer <> $1`,
        [this.#options.writerId],
      );
    } finally {
      await this.#maintenance.close();
    }
  }

  /** The next operation opens another connection. One that runs is tried again there. */
  reconnect(): void {
    this.#connection.drop();
  }

  async close(): Promise<void> {
    this.#maintenance.drop();
    await this.#connection.close();
  }

  async #use<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const { client, isNew } = await this.#connection.get();
    if (isNew) {
      // A server that took over may have lost rows, and given their numbers to other gateways.
      this.#gatewayKeys.clear();
      this.#position = null;
      this.#partitions.forget();
    }
    try {
      return await work(client);
    } catch (error) {
      this.#connection.drop();
      // The server may have restarted since the last operation. All operations can be repeated.
      if (isNew) throw error;
      return this.#use(work);
    }
  }

  async #readPosition(client: Client): Promise<number> {
    if (this.#position !== null) return this.#position;
    const { rows } = await client.query<{ position: number }>(
      `INSERT INTO call_log_writer (writer, position, seen_at) VALUES ($1, 0, now())
       ON CONFLICT (writer) DO UPDATE SET seen_at = now() RETURNING position`,
      [this.#options.writerId],
    );
    this.#position = rows[0]?.position ?? 0;
    return this.#position;
  }

  /** Creates what the rows need, and returns the numbers of their gateways. */
  async #prepare(client: Client, batches: readonly RowBatch[]): Promise<Map<string, number>> {
    const days = new Set<DayStart>();
    const gateways = new Map<string, GatewayRef>();
    for (const head of packedHeads(batches)) {
      days.add(dayStartOf(head.id));
      const name = keyOf(head);
      if (!gateways.has(name)) gateways.set(name, { accountId: head.accountId, gatewayId: head.gatewayId });
    }
    await this.#partitions.ensure(client, days);
    await this.#findGateways(client, gateways);
    return new Map([...gateways.keys()].map((name) => [name, this.#gatewayKeys.get(name) ?? 0]));
  }

  async #findGateways(client: Client, gateways: ReadonlyMap<string, GatewayRef>): Promise<void> {
    for (const [name, { accountId, gatewayId }] of gateways) {
      if (this.#gatewayKeys.has(name)) continue;
      await client.query(
        "INSERT INTO call_log_gateway (account_id, gateway_id) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        [accountId, gatewayId],
      );
      const { rows } = await client.query<{ key: number }>(
        "SELECT key FROM call_log_gateway WHERE account_id = $1 AND gateway_id = $2",
        [accountId, gatewayId],
      );
      this.#gatewayKeys.set(name, rows[0]?.key ?? 0);
    }
  }

  async #writeOnce(
    client: Client,
    span: { readonly from: number; readonly to: number },
    batches: readonly RowBatch[],
    gatewayKeys: ReadonlyMap<string, number>,
  ): Promise<void> {
    const flush = (known: ReadonlySet<string> | null) =>
      new Flush(
        {
          batches,
          gatewayKeys,
          quotas: this.#quotas,
          maxBodyBytes: this.#options.maxBodyBytes,
          known,
          hasTotals: this.#options.usageTotals,
        },
        this.#encoder,
      );
    try {
      await this.#transaction(client, span, flush(null));
    } catch (error) {
      const { code } = error as { readonly code?: string };
      if (code !== UNIQUE_VIOLATION && code !== CHECK_VIOLATION) throw error;
      await client.query("ROLLBACK");
      this.#partitions.forget();
      await this.#prepare(client, batches);
      await this.#transaction(client, span, flush(await knownIds(client, batches, gatewayKeys)));
    }
  }

  async #transaction(
    client: Client,
    { from, to }: { readonly from: number; readonly to: number },
    flush: Flush,
  ): Promise<void> {
    await client.query("BEGIN");
    const { rowCount } = await client.query({
      name: "move on",
      text: "UPDATE call_log_writer SET position = $3, seen_at = now() WHERE writer = $1 AND position = $2",
      values: [this.#options.writerId, from, to],
    });
    // An earlier connection has committed meanwhile.
    if (rowCount !== 1) throw new Error("the position of the call log's writer has changed");
    const deltas = await flush.run(client);
    await client.query("COMMIT");
    this.#deltas += deltas;
  }
}

async function readClock(client: Client): Promise<number> {
  const { rows } = await client.query<{ now: number }>(
    "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now",
  );
  return rows[0]?.now ?? 0;
}

/** The ids of the batches that are stored already. A process that does not repeat ids never needs it. */
async function knownIds(
  client: Client,
  batches: readonly RowBatch[],
  gatewayKeys: ReadonlyMap<string, number>,
): Promise<Set<string>> {
  const ids: string[] = [];
  for (const head of packedHeads(batches)) ids.push(head.id);
  const { rows } = await client.query<{ id: string }>(
    `SELECT id FROM call_log WHERE gateway = ANY ($1::int[]) AND id = ANY ($2::text[])
     UNION SELECT id FROM call_log_body WHERE id = ANY ($2::text[])`,
    [[...gatewayKeys.values()], ids],
  );
  return new Set(rows.map(({ id }) => id));
}
