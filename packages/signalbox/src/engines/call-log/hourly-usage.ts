/** Usage figures of one batch, added up in memory first, so that a commit touches each figure's row once. */
import { type CallRecord, LATENCY_BUCKETS_MS } from "./call-log.ts";
import { joinSql, rawSql, sql, type SqlQuery, sqlList } from "../../core/sql.ts";
import { LATENCY_COLUMNS } from "./day-schema.ts";

export const HOUR_MS = 3_600_000;

interface Figures {
  readonly hour: number;
  readonly gateway: number;
  readonly provider: string;
  readonly model: string;
  calls: number;
  errors: number;
  cached: number;
  tokensIn: number;
  tokensOut: number;
  tokensInCached: number;
  tokensOutReasoning: number;
  cost: number;
  durationMs: number;
  readonly latency: number[];
}

export class HourlyFigures {
  readonly #byKey = new Map<string, Figures>();
  #last: Figures | null = null;

  add(call: CallRecord, gateway: number): void {
    const figures = this.#figuresOf(call, gateway);
    figures.calls += 1;
    figures.errors += call.success ? 0 : 1;
    figures.cached += call.cached ? 1 : 0;
    figures.tokensIn += call.usage.tokensIn;
    figures.tokensOut += call.usage.tokensOut;
    figures.tokensInCached += call.usage.tokensInCached;
    figures.tokensOutReasoning += call.usage.tokensOutReasoning;
    figures.cost += call.cost ?? 0;
    figures.durationMs += call.durationMs;
    const bucket = latencyBucket(call.durationMs);
    figures.latency[bucket] = (figures.latency[bucket] ?? 0) + 1;
  }

  #figuresOf(call: CallRecord, gateway: number): Figures {
    const hour = Math.floor(call.createdAt / HOUR_MS) * HOUR_MS;
    const last = this.#last;
    const isSame =
      last?.hour === hour &&
      last.gateway === gateway &&
      last.provider === call.provider &&
      last.model === call.model;
    if (last !== null && isSame) return last;
    const key = `${hour}\n${gateway}\n${call.provider}\n${call.model}`;
    let figures = this.#byKey.get(key);
    if (figures === undefined) {
      figures = {
        hour,
        gateway,
        provider: call.provider,
        model: call.model,
        calls: 0,
        errors: 0,
        cached: 0,
        tokensIn: 0,
        tokensOut: 0,
        tokensInCached: 0,
        tokensOutReasoning: 0,
        cost: 0,
        durationMs: 0,
        latency: LATENCY_COLUMNS.map(() => 0),
      };
      this.#byKey.set(key, figures);
    }
    this.#last = figures;
    return figures;
  }

  *upserts(): Iterable<SqlQuery> {
    for (const figures of this.#byKey.values()) {
      const { hour, gateway, provider, model } = figures;
      yield sql`INSERT INTO hourly (hour, gateway, provider, model, ${SUM_COLUMNS})
        VALUES (${hour}, ${gateway}, ${provider}, ${model}, ${figures.calls}, ${figures.errors}, ${figures.cached},
          ${figures.tokensIn}, ${figures.tokensOut}, ${figures.tokensInCached}, ${figures.tokensOutReasoning},
          ${figures.cost}, ${figures.durationMs}, ${sqlList(figures.latency)})
        ON CONFLICT (hour, gateway, provider, model) DO UPDATE SET ${SUM_UPDATES}`;
    }
  }
}

const SUMS = [
  "calls",
  "errors",
  "cached",
  "tokens_in",
  "tokens_out",
  "tokens_in_cached",
  "tokens_out_reasoning",
  "cost",
  "duration_ms",
  ...LATENCY_COLUMNS,
];
const SUM_COLUMNS = rawSql(SUMS.join(", "));
const SUM_UPDATES = joinSql(
  SUMS.map((name) => rawSql(`${name} = ${name} + excluded.${name}`)),
  ", ",
);
/** For a reader's select list. */
export const SUM_SELECTS = rawSql(SUMS.map((name) => `sum(${name}) AS ${name}`).join(", "));

function latencyBucket(durationMs: number): number {
  const bucket = LATENCY_BUCKETS_MS.findIndex((bound) => durationMs <= bound);
  return bucket === -1 ? LATENCY_BUCKETS_MS.length : bucket;
}
