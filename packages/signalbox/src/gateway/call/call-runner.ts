/** Runs a planned call: waits for room in the log, then hands it to the relay. */
import type { Clock } from "../../core/clock.ts";
import { ulid } from "../../core/ulid.ts";
import { Call, type CallStart } from "./call.ts";
import type { CallParts } from "./call-parts.ts";

export type PlannedCall = Omit<CallStart, "id" | "createdAt" | "cacheStatus">;

export class CallRunner {
  readonly #parts: CallParts;
  readonly #clock: Clock;

  constructor(parts: CallParts, clock: Clock) {
    this.#parts = parts;
    this.#clock = clock;
  }

  /** Resolves once the call is under way. */
  async run(planned: PlannedCall): Promise<Call> {
    const { sink, metrics } = this.#parts;
    // A full log slows callers down rather than lose rows.
    if (!sink.hasRoom) await sink.whenRoom();
    const now = this.#clock.now();
    metrics.inFlight.inc();
    const call = new Call(
      this.#parts,
      { ...planned, id: ulid(now), createdAt: now, cacheStatus: null },
      0,
      () => metrics.inFlight.dec(),
    );
    metrics.overhead(performance.now() - planned.startedAt);
    call.run();
    return call;
  }
}
