/** The agent of the benchmark of due work: one schedule, which writes a row. */
import { Agent } from "signalbox";

/** Schedules that have run in this process. */
let ran = 0;

export class DueAgent extends Agent {
  static override readonly callable = ["plan", "ran"];

  async plan(at: number): Promise<void> {
    await this.schedule(new Date(at), "work", {});
  }

  work(): void {
    this.sql`CREATE TABLE IF NOT EXISTS done (at INTEGER NOT NULL)`;
    this.sql`INSERT INTO done (at) VALUES (${Date.now()})`;
    ran += 1;
  }

  ran(): number {
    return ran;
  }
}
