/**
 * Checks of several nodes. Each node stores what it has measured, and one node at a time checks a rule with the sum of all nodes.
 *
 * Invariants:
 * 1. A node stores the totals of a slot under its own name, so storing them again changes nothing.
 * 2. A rule is checked by the node that has set its `checked_at`. The state is written only while `checked_at` is still that of the check: of
 *    two nodes that decided, one writes state and notices.
 * 3. Slots and times are those of PostgreSQL's clock, so nodes whose clocks differ measure the same window.
 * See README.md.
 */
import type { SharedClock } from "../core/shared-clock.ts";
import { rawSql, sql, sqlList } from "../core/sql.ts";
import { valueOf, type Watched } from "./alert-measures.ts";
import type { AlertState } from "./alert-rule.ts";
import { decide } from "./decide.ts";
import type { ChecksParts } from "./local-checks.ts";
import { type SlotFigures, sumSlots } from "./sliding-window.ts";

export interface SharedChecksParts extends ChecksParts {
  readonly clock: SharedClock;
  /** A name that no other process has, also no earlier one of this node. */
  readonly node: string;
  readonly intervalMs: number;
}

interface ClaimedRow {
  readonly id: string;
  readonly state: string;
  readonly modified_at: number;
}

interface MeasureRow {
  readonly count: number;
  readonly failed: number;
  readonly amount: number;
  readonly durations: string;
}

/** The timers of nodes are not in step: a rule that was checked this much of an interval ago is due. */
const DUE_AFTER = 0.8;
const MAX_ROWS = 500;

export class SharedChecks {
  readonly #parts: SharedChecksParts;

  constructor(parts: SharedChecksParts) {
    this.#parts = parts;
  }

  async run(): Promise<void> {
    const { clock, measures } = this.#parts;
    await this.adjustClock();
    const watched = new Map(measures.watched().map((one) => [one.rule.id, one]));
    await this.#store(watched);
    const now = clock.now();
    for (const row of await this.#claim([...watched.keys()], now)) {
      const one = watched.get(row.id);
      if (one?.rule.modifiedAt === row.modified_at)
        await this.#check(one, JSON.parse(row.state) as AlertState, now);
    }
  }

  async adjustClock(): Promise<void> {
    const { clock, database } = this.#parts;
    const sentAt = clock.local.now();
    const row = await database.get<{ now: number }>(
      rawSql("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now"),
    );
    if (row !== undefined) clock.adjust(sentAt, row.now);
  }

  async #store(watched: ReadonlyMap<string, Watched>): Promise<void> {
    const { database, node } = this.#parts;
    const rows: object[] = [];
    const stored: (() => void)[] = [];
    for (const { rule, window } of watched.values()) {
      const changes = window.changes();
      for (const slot of changes.slots) rows.push(toRow(rule.id, rule.modifiedAt, slot));
      stored.push(changes.stored);
    }
    for (let at = 0; at < rows.length; at += MAX_ROWS) {
      // Rules that were deleted meanwhile have no row to refer to.
      await database.run(
        sql`INSERT INTO alert_measure (rule_id, version, slot, node, count, failed, amount, durations)
            SELECT m.rule_id, m.version, m.slot, ${node}, m.count, m.failed, m.amount, m.durations
            FROM jsonb_to_recordset(${JSON.stringify(rows.slice(at, at + MAX_ROWS))}::jsonb)
              AS m (rule_id text, version bigint, slot bigint, count bigint, failed bigint, amount float8, durations text)
            JOIN alert_rule r ON r.id = m.rule_id
            ON CONFLICT (rule_id, version, slot, node) DO UPDATE SET
              count = excluded.count, failed = excluded.failed, amount = excluded.amount, durations = excluded.durations`,
      );
    }
    for (const done of stored) done();
  }

  /** The rules that no other node has checked in this interval. */
  async #claim(ids: readonly string[], now: number): Promise<ClaimedRow[]> {
    if (ids.length === 0) return [];
    const before = now - Math.floor(this.#parts.intervalMs * DUE_AFTER);
    return this.#parts.database.all<ClaimedRow>(
      sql`UPDATE alert_rule SET checked_at = ${now} WHERE id IN (${sqlList(ids)}) AND checked_at <= ${before}
          RETURNING id, state, modified_at`,
    );
  }

  async #check({ rule, window, observedSince }: Watched, before: AlertState, now: number): Promise<void> {
    const { database, rules, outbox } = this.#parts;
    const { id, settings, modifiedAt } = rule;
    const { first, last } = window.range(now);
    const rows = await database.all<MeasureRow>(
      sql`SELECT count, failed, amount, durations FROM alert_measure
          WHERE rule_id = ${id} AND version = ${modifiedAt} AND slot BETWEEN ${first} AND ${last}`,
    );
    const totals = sumSlots(
      rows.map(({ count, failed, amount, durations }) => ({
        count,
        failed,
        sum: amount,
        durations: JSON.parse(durations) as number[],
      })),
    );
    const value = valueOf(rule, totals);
    const { state, notice } = decide({ settings, state: before, value, now, observedSince });
    await database.transaction(
      async (tx) => {
        const { changes } = await tx.run(
          sql`UPDATE alert_rule SET state = ${JSON.stringify(state)}
              WHERE id = ${id} AND checked_at = ${now} AND modified_at = ${modifiedAt}`,
        );
        if (changes > 0 && notice !== null) await outbox.add(tx, { ...rule, state }, notice);
        await tx.run(
          sql`DELETE FROM alert_measure WHERE rule_id = ${id} AND (slot < ${first} OR version < ${modifiedAt})`,
        );
      },
      { scope: "alerts", isConcurrent: true },
    );
    rules.setState(id, state);
  }
}

function toRow(
  ruleId: string,
  version: number,
  { number, count, failed, sum, durations }: SlotFigures,
): object {
  const histogram = JSON.stringify(Array.from(durations));
  return { rule_id: ruleId, version, slot: number, count, failed, amount: sum, durations: histogram };
}
