/** Tells the operator's log about refused deliveries without letting a flood of them fill it: one line a source and reason per period. */
import type { Clock } from "../core/clock.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { DeliveryReason } from "./delivery-record.ts";
import type { Source } from "./source.ts";

const PERIOD_MS = 10_000;
/** No source is called like this. */
const CLAIMS = "claims";

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
    const also = this.#next(`${source.name} ${reason}`);
    if (also === null) return;
    this.#logger.warn(
      { source: source.name, reason, ...also },
      reason === "no_secret"
        ? `webhook refused: set ${source.secretVariable} to accept deliveries of ${source.name}`
        : "webhook refused",
    );
  }

  claimsFailed(error: unknown): void {
    const also = this.#next(CLAIMS);
    if (also !== null)
      this.#logger.error(
        { err: error, ...also },
        "webhooks of new entities are refused: their names cannot be written",
      );
  }

  /** What to add to a line that may be logged now; null when it may not. */
  #next(key: string): { alsoSince?: number } | null {
    const now = this.#clock.now();
    const count = this.#counts.get(key);
    if (count !== undefined && now - count.since < PERIOD_MS) {
      count.suppressed += 1;
      return null;
    }
    this.#counts.set(key, { since: now, suppressed: 0 });
    return count?.suppressed ? { alsoSince: count.suppressed } : {};
  }
}
