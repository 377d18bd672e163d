/** How many events wait for each route, and how old the first is, for Prometheus. A node reports the routes that it runs, so that the values of all nodes add up. */
import type { Registry } from "prom-client";
import type { Clock } from "../../core/clock.ts";
import { sql } from "../../core/sql.ts";
import type { Database } from "../../database/database.ts";
import { registerMetric } from "../../telemetry/instruments.ts";
import { routeKey } from "./route.ts";

interface QueueRow {
  readonly account_id: string;
  readonly source: string;
  readonly route: string;
  readonly count: number;
  readonly oldest: number;
}

export interface QueueFigureParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly registry: Registry;
  /** Whether this process makes the attempts of the route. */
  runs(key: string): boolean;
}

export class QueueFigures {
  readonly #parts: QueueFigureParts;
  #rows: readonly QueueRow[] = [];

  constructor(parts: QueueFigureParts) {
    this.#parts = parts;
    const { registry, clock } = parts;
    const labels = ["account", "source", "route"];
    const series = (value: (row: QueueRow) => number) =>
      this.#rows.map((row) => ({
        labels: { account: row.account_id, source: row.source, route: row.route },
        value: value(row),
      }));
    const depth = {
      name: "signalbox_webhook_waiting_events",
      help: "Events of webhook routes that wait, held ones included.",
      labels,
    };
    registerMetric(registry, "gauge", depth, () => series(({ count }) => count));
    const age = {
      name: "signalbox_webhook_oldest_waiting_seconds",
      help: "Age of the oldest event that waits for a webhook route.",
      labels,
    };
    registerMetric(registry, "gauge", age, () =>
      series(({ oldest }) => Math.max(0, clock.now() - oldest) / 1000),
    );
  }

  async read(): Promise<void> {
    const { database, runs } = this.#parts;
    const rows = await database.scan<QueueRow>(
      sql`SELECT account_id, source, route, count(*) AS count, min(received_at) AS oldest FROM webhook_event
          WHERE due_at IS NOT NULL GROUP BY account_id, source, route`,
      { account: "", kind: "search" },
    );
    this.#rows = rows.filter(({ account_id: accountId, source, route: name }) =>
      runs(routeKey({ accountId, source, name })),
    );
  }
}
