/** One counter per name. It counts, stores who counted, and sends a report once a day. */
import { Agent, callable } from "signalbox";

interface CounterState {
  count: number;
  lastBy: string | null;
}

export class CounterAgent extends Agent<Record<string, string | undefined>, CounterState> {
  override initialState: CounterState = { count: 0, lastBy: null };

  override async onStart() {
    this.sql`CREATE TABLE IF NOT EXISTS hit (id INTEGER PRIMARY KEY, by TEXT NOT NULL, at INTEGER NOT NULL)`;
    // If the schedule exists already, this call returns it.
    await this.schedule("0 6 * * *", "report");
  }

  /** Row and state are written in one transaction: if the method throws, neither is stored. */
  @callable({ description: "Increments the counter." })
  increment(by = "somebody") {
    this.sql`INSERT INTO hit (by, at) VALUES (${by}, ${Date.now()})`;
    this.setState({ count: this.state.count + 1, lastBy: by });
    return this.state.count;
  }

  @callable({ description: "Lists who counted most." })
  leaders(limit = 3) {
    return this.sql<{ by: string; hits: number }>`
      SELECT by, count(*) AS hits FROM hit GROUP BY by ORDER BY hits DESC, by LIMIT ${limit}`;
  }

  /** Called by the schedule. Failed calls are repeated. */
  async report() {
    const url = this.env["REPORT_URL"];
    if (url === undefined) return;
    await this.sendWebhook(url, { counter: this.name, ...this.state });
  }

  override onRequest() {
    return Response.json(this.state);
  }
}
