/** The agent of the agents benchmark; the rival's version of the class is in `rivals/workerd/worker.js`. */
import { Agent } from "signalbox";

interface CounterState {
  readonly text: string;
}

export class CounterAgent extends Agent<unknown, CounterState> {
  static override readonly callable = ["get", "increment", "announce"];

  override initialState: CounterState = { text: "" };

  override onStart(): void {
    this.sql`CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY, value INTEGER NOT NULL)`;
    this.sql`INSERT OR IGNORE INTO counter (id, value) VALUES (1, 0)`;
  }

  /** Reads only. */
  get(): number {
    return this.sql<{ value: number }>`SELECT value FROM counter WHERE id = 1`[0]?.value ?? 0;
  }

  /** One durable write. */
  increment(): number {
    const rows = this.sql<{
      value: number;
    }>`UPDATE counter SET value = value + 1 WHERE id = 1 RETURNING value`;
    return rows[0]?.value ?? 0;
  }

  /** Changes the state, which is sent to every open socket. */
  announce(text: string): void {
    this.setState({ text });
  }

  override onRequest(request: Request): Response {
    return Response.json({ value: request.method === "POST" ? this.increment() : this.get() });
  }
}
