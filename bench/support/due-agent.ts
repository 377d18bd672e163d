/** The agent of the benchmarks of due work: one schedule, which writes a row. It runs in the event loop that it measures. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Agent } from "signalbox";

const NS_PER_MS = 1e6;
const RESOLUTION_MS = 5;
const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delays.enable();

/** Schedules that have run in this process. */
let ran = 0;

export class DueAgent extends Agent {
  static override readonly callable = ["plan", "ran", "measureLoop", "loopDelay"];

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

  measureLoop(): void {
    delays.reset();
  }

  /** Milliseconds by which timers were late, since `measureLoop`. */
  loopDelay(): { p50: number; p99: number; max: number } {
    const late = (ns: number) => Math.max(0, ns / NS_PER_MS - RESOLUTION_MS);
    return { p50: late(delays.percentile(50)), p99: late(delays.percentile(99)), max: late(delays.max) };
  }
}
