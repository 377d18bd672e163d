/** Tells the operator's log about rejected deliveries without letting a flood of them fill it: one line a source and reason per period. */
import type { Clock } from "../core/clock.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { DeliveryReason } from "./delivery-record.ts";
import type { Source } from "./source.ts";

const PERIOD_MS = 10_000;

interface Count {
  since: number;
  suppressed: number;
}

export class RejectionNotice {
  readonly #logger: Logger;
  readonly #clock: Clock;
  /** Sources and reasons are both few. */
  readonly #counts = new Map<string, Count>();

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  rejected(source: Source, reason: DeliveryReason | null): void {
    const now = this.#clock.now();
    const key = `${source.name} ${reason}`;
    const count = this.#counts.get(key);
    if (count !== undefined && now - count.since < PERIOD_MS) {
      count.suppressed += 1;
      return;
    }
    this.#counts.set(key, { since: now, suppressed: 0 });
    this.#logger.warn(
      { source: source.name, reason, ...(count?.suppressed ? { alsoSince: count.suppressed } : {}) },
      reason === "no_secret"
        ? `webhook refused: set ${source.secretVariable} to accept deliveries of ${source.name}`
        : "webhook refused",
    );
  }
}
