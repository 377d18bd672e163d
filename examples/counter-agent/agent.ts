/** One counter per name: it counts, remembers who counted, and reports once a day. */
import { Agent, callable } from "signalbox";

interface CounterState {
  count: number;
  lastBy: string | null;
}

export class CounterAgent extends Agent<Record<string, string | undefined>, CounterState> {
  override initialState: CounterState = { count: 0, lastBy: null };

  override async onStart() {
    this.sql`CREATE TABLE IF NOT EXISTS hit (id INTEGER PRIMARY KEY, by TEXT NOT NULL, at INTEGER NOT NULL)`;
    // Asking again at every start gives the schedule there is.
    await this.schedule("0 6 * * *", "report");
  }

  /** Row and state are one transaction: if the method threw, neither would be there. */
  @callable({ description: "Counts one more." })
  increment(by = "somebody") {
    this.sql`INSERT INTO hit (by, at) VALUES (${by}, ${Date.now()})`;
    this.setState({ count: this.state.count + 1, lastBy: by });
    return this.state.count;
  }

  @callable({ description: "Who counted most." })
  leaders(limit = 3) {
    return this.sql<{ by: string; hits: number }>`
      SELECT by, count(*) AS hits FROM hit GROUP BY by ORDER BY hits DESC, by LIMIT ${limit}`;
  }

  /** Work that may fail and is tried again goes through the queue. */
  async report() {
    const url = this.env["REPORT_URL"];
    if (url === undefined) return;
    await this.sendWebhook(url, { counter: this.name, ...this.state });
  }

  override onRequest() {
    return Response.json(this.state);
  }
}
