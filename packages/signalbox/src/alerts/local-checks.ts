/** Checks of a process that uses its database alone: what it has measured is everything. The database is written only when a state changes. */
import type { Clock } from "../core/clock.ts";
import { sql } from "../core/sql.ts";
import type { Database } from "../database/database.ts";
import { type AlertMeasures, valueOf, type Watched } from "./alert-measures.ts";
import type { AlertState } from "./alert-rule.ts";
import type { AlertRules } from "./alert-rules.ts";
import { decide } from "./decide.ts";
import type { NoticeOutbox } from "./notice-outbox.ts";

export interface ChecksParts {
  readonly rules: AlertRules;
  readonly measures: AlertMeasures;
  readonly outbox: NoticeOutbox;
  readonly database: Database;
  readonly clock: Clock;
}

export class LocalChecks {
  readonly #parts: ChecksParts;

  constructor(parts: ChecksParts) {
    this.#parts = parts;
  }

  async run(): Promise<void> {
    for (const watched of this.#parts.measures.watched()) await this.#check(watched);
  }

  async #check({ rule: { id, settings }, window, observedSince }: Watched): Promise<void> {
    const { rules, clock, database, outbox } = this.#parts;
    const rule = rules.byId(id);
    if (rule === undefined) return;
    const now = clock.now();
    const value = valueOf(rule, window.totals(now));
    const { state, notice } = decide({ settings, state: rule.state, value, now, observedSince });
    if (notice !== null || isChange(rule.state, state)) {
      const isThere = await database.transaction(async (tx) => {
        const { changes } = await tx.run(
          sql`UPDATE alert_rule SET state = ${JSON.stringify(state)} WHERE id = ${id}`,
        );
        if (changes > 0 && notice !== null) await outbox.add(tx, { ...rule, state }, notice);
        return changes > 0;
      });
      // Its account was deleted.
      if (!isThere) return rules.forget(id);
    }
    // Not before the commit: a failed one is decided again.
    rules.setState(id, state);
  }
}

function isChange(before: AlertState, after: AlertState): boolean {
  return (
    before.status !== after.status || before.isReported !== after.isReported || before.since !== after.since
  );
}
