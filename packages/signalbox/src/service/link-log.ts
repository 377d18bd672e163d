/**
 * Log lines about the links between nodes. A link that cannot be made is tried several times a second, and anybody can connect to the port of
 * the links: the same problem of the same node is logged once a minute, with the number of times that it was not.
 */
import type { Clock } from "../core/clock.ts";
import type { Logger } from "../telemetry/logger.ts";

const REPEAT_MS = 60_000;
/** Nodes that are gone do not come back under the same identity. */
const MAX_PROBLEMS = 100;

interface Problem {
  readonly reason: string;
  readonly loggedAt: number;
  unlogged: number;
}

export class LinkLog {
  readonly #logger: Pick<Logger, "info" | "warn">;
  readonly #clock: Clock;
  /** By node; strangers, whose reasons they choose, are one. */
  readonly #problems = new Map<string | null, Problem>();

  constructor(logger: Pick<Logger, "info" | "warn">, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  up(peer: string): void {
    this.#problems.delete(peer);
    this.#logger.info({ peer }, "cluster: linked to a node");
  }

  down(peer: string, reason: string): void {
    this.#logger.warn({ peer, reason }, "cluster: the link to a node ended");
  }

  /** `peer` is null if the other side did not prove that it is a node. */
  problem(peer: string | null, reason: string): void {
    const now = this.#clock.now();
    const last = this.#problems.get(peer);
    const isSame = last !== undefined && (peer === null || last.reason === reason);
    if (isSame && now - last.loggedAt < REPEAT_MS) {
      last.unlogged += 1;
      return;
    }
    const repeated = isSame && last.unlogged > 0 ? { repeated: last.unlogged } : {};
    // Set anew, so that the first entry is the oldest one.
    this.#problems.delete(peer);
    this.#problems.set(peer, { reason, loggedAt: now, unlogged: 0 });
    if (this.#problems.size > MAX_PROBLEMS) this.#problems.delete([...this.#problems.keys()][0] ?? null);
    this.#logger.warn({ peer, reason, ...repeated }, "cluster: cannot link to a node");
  }
}
