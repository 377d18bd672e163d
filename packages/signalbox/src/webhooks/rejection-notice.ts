/** Logs refused deliveries, at most one line for each source and reason in a period, so that a flood does not fill the log. */
import type { Clock } from "../core/clock.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { DeliveryReason } from "./delivery-record.ts";
import type { Source } from "./source.ts";

const PERIOD_MS = 10_000;
/** Key of failed claims; keys of sources contain a space. */
const CLAIMS = "claims";
const LISTENERS = "listeners";

interface Count {
  since: number;
  suppressed: number;
}

export class RejectionNotice {
  readonly #logger: Logger;
  readonly #clock: Clock;
  /** By source and reason, which are both few. */
  readonly #counts = new Map<string, Count>();

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  rejected(source: Source, reason: DeliveryReason | null): void {
    const suppressed = this.#next(`${source.name} ${reason}`);
    if (suppressed === null) return;
    this.#logger.warn(
      { source: source.name, reason, ...suppressed },
      reason === "no_secret"
        ? `webhook refused: set ${source.secretVariable} to accept deliveries of ${source.name}`
        : "webhook refused",
    );
  }

  claimsFailed(error: unknown): void {
    const suppressed = this.#next(CLAIMS);
    if (suppressed !== null)
      this.#logger.error(
        { err: error, ...suppressed },
        "webhooks of new entities are refused: the names of their instances cannot be written to the database",
      );
  }

  listenersMissed(error: unknown): void {
    const suppressed = this.#next(LISTENERS);
    if (suppressed !== null)
      this.#logger.warn(
        { err: error, ...suppressed },
        "webhooks cannot be stored for listeners, which miss them",
      );
  }

  /** Null when the line must be suppressed; otherwise the number suppressed since the last line, to be logged with it. */
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
