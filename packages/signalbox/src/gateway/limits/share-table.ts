/**
 * The statements on `limit_share`. Each is one statement: no lock is held between two messages of a node, so a node that hangs delays no other one.
 *
 * Invariants:
 * 1. The row of a bucket is its lock. Statements lock rows in the order of their ids.
 * 2. A statement of `exchange` that is sent again is counted once: the row has the number of the node's last statement.
 * 3. After `exchange`, used + held + spare of a row exceeds the limit only by calls that run alone, by routes' budgets, which refuse nothing, and
 *    when the limit was lowered.
 * 4. A node that was declared dead takes nothing.
 * 5. Nothing is counted in slots that were computed by a wrong clock, or long ago: they would end the current slot, with all that was used in it.
 */
import { sql } from "../../core/sql.ts";
import type { Database } from "../../database/database.ts";

/** What a node asks for and reports of one bucket. Amounts are whole units of the rule's kind. */
export interface ShareAsk {
  readonly id: number;
  /** Grows from statement to statement of a node. */
  readonly seq: number;
  readonly window_key: string;
  readonly slot: number;
  readonly oldest: number;
  /** A later slot comes from a clock that was wrong. */
  readonly ahead: number;
  readonly ends: number;
  /** An amount fits up to `lim`; something is left below `top`; nothing is taken ahead above `soft`. */
  readonly lim: number;
  readonly top: number;
  readonly soft: number;
  /** Used since the last statement. */
  readonly charge: number;
  /** By running calls of the node, all in all. */
  readonly held: number;
  readonly expected: number;
  /** What the node keeps of its spare amount; the rest is given back. */
  readonly keep: number;
  /** For waiting calls, beyond `keep`. */
  readonly need: number;
  /** What the waiting calls are expected to use. */
  readonly likely: number;
  /** The amount of a waiting call that may run alone; 0 when there is none. */
  readonly alone: number;
  /** `need` is for a call that begins only while no node has taken anything. */
  readonly single: boolean;
  /** Must be granted. */
  readonly forced: number;
  /** To take ahead. */
  readonly prefer: number;
}

export interface ShareRow {
  readonly id: number;
  readonly window_key: string;
  readonly earlier_window: string;
  readonly window_age: number;
  /** False when the statement was counted before, or has another window. */
  readonly is_new: boolean;
  /** Nothing was counted: the slots were computed by a wrong clock, or long ago. */
  readonly is_off: boolean;
  readonly used: Readonly<Record<string, number>>;
  readonly others_held: number;
  readonly others_spare: number;
  readonly own_spare: number;
  readonly is_tight: boolean;
}

export interface Exchanged {
  readonly isAlive: boolean;
  /** By the clock of PostgreSQL. */
  readonly now: number;
  readonly rows: readonly ShareRow[];
}

export interface ShareName {
  readonly account_id: string;
  readonly owner: string;
  readonly bucket: string;
}

export interface NewShare extends ShareName {
  readonly kind: string;
  readonly window_key: string;
  readonly ends_at: number;
}

export interface StoredShare extends ShareName {
  readonly id: number;
  readonly window_key: string;
  readonly used: Readonly<Record<string, number>>;
  readonly held: number;
  readonly spare: number;
}

/** Nodes know the clock of PostgreSQL to a fraction of a round trip. */
const MAX_AHEAD_MS = 1000;
/** A statement may wait for locks, or be repeated after a pause. Less than the `ahead` of an ask. */
const MAX_BEHIND_MS = 8000;
/** How long nothing is taken ahead after a call has found its amount at other nodes. */
const TIGHT_MS = 300;

export class ShareTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Creates missing rows; returns the ids. A row that another node creates at this moment may be missing: ask again. */
  ensure(buckets: readonly NewShare[]): Promise<(ShareName & { readonly id: number })[]> {
    return this.#database.all(
      sql`WITH new AS (
            SELECT * FROM json_to_recordset(${JSON.stringify(buckets)}::json)
              AS n (account_id text, owner text, bucket text, kind text, window_key text, ends_at bigint)),
          created AS (
            INSERT INTO limit_share (account_id, owner, bucket, kind, window_key, ends_at)
            SELECT account_id, owner, bucket, kind, window_key, ends_at FROM new ORDER BY account_id, owner, bucket
            ON CONFLICT DO NOTHING RETURNING id, account_id, owner, bucket)
          SELECT id, account_id, owner, bucket FROM created
          UNION ALL
          SELECT s.id, s.account_id, s.owner, s.bucket FROM limit_share s JOIN new USING (account_id, owner, bucket)`,
    );
  }

  /** Reports and takes, for any number of buckets. `at` is the time by which the node computed the slots. */
  async exchange(inc: string, at: number, asks: readonly ShareAsk[]): Promise<Exchanged> {
    const rows = await this.#database.all<ShareRow & { readonly is_alive: boolean; readonly now: number }>(
      sql`WITH alive AS MATERIALIZED (
            SELECT inc FROM signalbox_node WHERE inc = ${inc}::bigint AND state <> 'dead'),
          ask AS MATERIALIZED (
            SELECT a.* FROM json_to_recordset(${JSON.stringify(asks)}::json) AS a (
              id bigint, seq bigint, window_key text, slot bigint, oldest bigint, ahead bigint, ends bigint,
              lim bigint, top bigint, soft bigint, charge bigint, held bigint, expected bigint, keep bigint,
              need bigint, likely bigint, alone bigint, single boolean, forced bigint, prefer bigint)
            WHERE EXISTS (SELECT 1 FROM alive)),
          locked AS MATERIALIZED (
            SELECT s.* FROM limit_share s WHERE s.id IN (SELECT id FROM ask) ORDER BY s.id FOR UPDATE),
          timed AS MATERIALIZED (
            SELECT l.*, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now FROM locked l),
          -- The node's own loan, and the slot that counts now: that of the most advanced clock.
          known AS MATERIALIZED (
            SELECT l.id, l.window_key AS stored_window, l.earlier_window, l.window_since, l.used AS stored_used,
              l.loans, l.ends_at, l.tight_until, a.seq, a.slot, a.oldest, a.ahead, a.ends, a.lim, a.top, a.soft,
              a.charge, a.held, a.expected, a.keep, a.need, a.likely, a.alone, a.single, a.forced, a.prefer,
              l.held - coalesce((l.loans -> ${inc}::text ->> 0)::bigint, 0) AS others_held,
              l.spare - coalesce((l.loans -> ${inc}::text ->> 2)::bigint, 0) AS others_spare,
              coalesce((l.loans -> ${inc}::text ->> 2)::bigint, 0) AS old_spare,
              l.window_key = a.window_key AND a.seq > coalesce((l.loans -> ${inc}::text ->> 4)::bigint, 0) AS is_new,
              ${at}::bigint NOT BETWEEN l.now - ${MAX_BEHIND_MS}::bigint AND l.now + ${MAX_AHEAD_MS}::bigint AS is_off,
              CASE WHEN l.last_slot > a.ahead THEN a.slot ELSE greatest(l.last_slot, a.slot) END AS current,
              l.now
            FROM timed l JOIN ask a ON a.id = l.id),
          counted AS MATERIALIZED (
            SELECT k.*, u.amount AS used_amount, u.slots
            FROM known k CROSS JOIN LATERAL (
              SELECT coalesce(sum(z.amount), 0)::bigint AS amount,
                coalesce(jsonb_object_agg(z.slot::text, z.amount), '{}'::jsonb) AS slots
              FROM (
                SELECT CASE WHEN e.slot > k.ahead THEN k.current ELSE e.slot END AS slot, sum(e.amount)::bigint AS amount
                FROM (
                  SELECT key::bigint AS slot, value::bigint AS amount FROM jsonb_each_text(k.stored_used)
                  UNION ALL SELECT k.current, k.charge WHERE k.charge <> 0) e
                GROUP BY 1) z
              WHERE z.slot >= k.oldest + k.current - k.slot) u),
          fitted AS MATERIALIZED (
            SELECT c.*, c.used_amount + c.others_held + c.held + c.others_spare + c.keep + c.forced AS base,
              CASE WHEN c.single AND c.others_held + c.held + c.others_spare + c.keep > 0 THEN 0
                WHEN c.alone > 0 AND c.others_held + c.held + c.others_spare + c.keep = 0 AND c.used_amount < c.top
                THEN greatest(c.alone, least(c.need, c.lim - c.used_amount))
                ELSE least(c.need, greatest(c.lim - c.used_amount - c.others_held - c.held - c.others_spare - c.keep, 0))
              END AS granted
            FROM counted c),
          ahead AS MATERIALIZED (
            SELECT f.*, CASE WHEN f.granted < f.need OR f.now < f.tight_until THEN 0
                ELSE least(f.prefer, greatest(f.soft - f.base - f.granted, 0) / 2) END AS taken_ahead
            FROM fitted f),
          result AS MATERIALIZED (
            SELECT a.*, a.keep + a.forced + a.granted + a.taken_ahead AS new_spare,
              a.granted < a.need OR a.now < a.tight_until OR a.base + a.granted > a.soft AS is_tight
            FROM ahead a),
          stored AS (
            UPDATE limit_share s SET used = r.slots, last_slot = r.current,
              ends_at = greatest(r.ends_at, r.ends + r.current - r.slot),
              held = r.others_held + r.held, spare = r.others_spare + r.new_spare,
              loans = r.loans || jsonb_build_object(${inc}::text, jsonb_build_array(r.held, r.expected, r.new_spare,
                r.keep + least(r.granted + r.forced, r.likely) + r.taken_ahead, r.seq)),
              tight_until = CASE WHEN r.granted < r.need AND r.others_spare > 0 THEN r.now + ${TIGHT_MS}::bigint
                ELSE r.tight_until END
            FROM result r WHERE s.id = r.id AND r.is_new AND NOT r.is_off RETURNING s.id)
          SELECT EXISTS (SELECT 1 FROM alive) AS is_alive,
            floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now,
            r.id, r.stored_window AS window_key, r.earlier_window, r.now - r.window_since AS window_age,
            t.id IS NOT NULL AS is_new, r.is_new AND r.is_off AS is_off, CASE WHEN t.id IS NULL THEN r.stored_used ELSE r.slots END AS used,
            r.others_held, r.others_spare, CASE WHEN t.id IS NULL THEN r.old_spare ELSE r.new_spare END AS own_spare,
            r.is_tight
          FROM (SELECT 1) AS one LEFT JOIN result r ON true LEFT JOIN stored t ON t.id = r.id`,
    );
    const [first] = rows;
    return {
      isAlive: first?.is_alive === true,
      now: first?.now ?? 0,
      rows: rows.filter(({ id }) => id !== null),
    };
  }

  /** The window of a rule has changed. False when the row has changed meanwhile. */
  async convert(
    row: Pick<ShareRow, "id" | "window_key" | "used">,
    to: {
      readonly window_key: string;
      readonly used: Readonly<Record<string, number>>;
      readonly slot: number;
    },
  ): Promise<boolean> {
    const changed = await this.#database.all(
      sql`UPDATE limit_share SET window_key = ${to.window_key}, earlier_window = ${row.window_key},
            window_since = floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint,
            used = ${JSON.stringify(to.used)}::jsonb, last_slot = ${to.slot}
          WHERE id = ${row.id} AND window_key = ${row.window_key} AND used = ${JSON.stringify(row.used)}::jsonb
          RETURNING id`,
    );
    return changed.length > 0;
  }

  /** Up to a thousand rows of each owner. */
  ofOwners(accountId: string, owners: readonly string[]): Promise<StoredShare[]> {
    return this.#database.all(
      sql`SELECT s.* FROM json_array_elements_text(${JSON.stringify(owners)}::json) AS o (owner) CROSS JOIN LATERAL (
            SELECT id, account_id, owner, bucket, window_key, used, held, spare FROM limit_share
            WHERE account_id = ${accountId} AND owner = o.owner ORDER BY bucket LIMIT 1000) s`,
    );
  }

  owners(): Promise<Pick<ShareName, "account_id" | "owner">[]> {
    return this.#database.all(sql`SELECT DISTINCT account_id, owner FROM limit_share`);
  }

  async forget(accountId: string, owner: string): Promise<void> {
    await this.#database.all(
      sql`DELETE FROM limit_share WHERE id IN (
            SELECT id FROM limit_share WHERE account_id = ${accountId} AND owner = ${owner} ORDER BY id FOR UPDATE)`,
    );
  }

  /** A text that changes when a node joins, leaves or dies. */
  async membership(): Promise<string> {
    const row = await this.#database.get<{ readonly nodes: string | null }>(
      sql`SELECT string_agg(inc::text || state, ',' ORDER BY inc) AS nodes FROM signalbox_node`,
    );
    return row?.nodes ?? "";
  }

  /**
   * Counts what dead nodes had: amounts that their calls were expected to use, and amounts that they had taken, become spent; places of parallel
   * calls are free. A node that is dead or gone never comes back under its number.
   *
   * Two statements: a row of a node is committed before its first loan, so in one snapshot a loan without a living node belongs to a dead one. The
   * second statement reads rows as they are when it has locked them, which may be newer than the nodes that it sees.
   */
  async settleDead(): Promise<void> {
    const dead = await this.#database.all<{ readonly inc: string }>(
      sql`SELECT DISTINCT k.inc FROM limit_share s CROSS JOIN LATERAL jsonb_object_keys(s.loans) AS k (inc)
          WHERE NOT EXISTS (SELECT 1 FROM signalbox_node n WHERE n.inc = k.inc::bigint AND n.state <> 'dead')`,
    );
    if (dead.length === 0) return;
    const incs = JSON.stringify(dead.map(({ inc }) => inc));
    await this.#database.all(
      sql`WITH gone AS MATERIALIZED (SELECT array_agg(inc) AS incs FROM json_array_elements_text(${incs}::json) AS g (inc)),
          locked AS MATERIALIZED (
            SELECT s.* FROM limit_share s WHERE s.loans ?| (SELECT incs FROM gone) ORDER BY s.id FOR UPDATE),
          lost AS MATERIALIZED (
            SELECT l.id, l.last_slot, l.used, l.loans - (SELECT incs FROM gone) AS loans,
              l.held - sum((e.value ->> 0)::bigint)::bigint AS held,
              l.spare - sum((e.value ->> 2)::bigint)::bigint AS spare,
              CASE WHEN l.kind = 'parallel' THEN 0
                ELSE sum((e.value ->> 1)::bigint + (e.value ->> 3)::bigint)::bigint END AS spent
            FROM locked l CROSS JOIN LATERAL jsonb_each(l.loans) e WHERE e.key = ANY ((SELECT incs FROM gone)::text[])
            GROUP BY l.id, l.last_slot, l.used, l.loans, l.held, l.spare, l.kind)
          UPDATE limit_share s SET loans = l.loans, held = l.held, spare = l.spare,
            used = CASE WHEN l.spent = 0 THEN l.used ELSE l.used || jsonb_build_object(l.last_slot::text,
              coalesce((l.used ->> l.last_slot::text)::bigint, 0) + l.spent) END
          FROM lost l WHERE s.id = l.id RETURNING s.id`,
    );
  }

  /** Deletes rows of windows that have ended, by the clock of PostgreSQL: the node's may be ahead, and end windows of others. */
  async removeEnded(): Promise<void> {
    await this.#database.all(
      sql`DELETE FROM limit_share WHERE id IN (
            SELECT id FROM limit_share WHERE ends_at <= floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
              AND held = 0 AND spare = 0 ORDER BY id
            FOR UPDATE SKIP LOCKED)`,
    );
  }
}
