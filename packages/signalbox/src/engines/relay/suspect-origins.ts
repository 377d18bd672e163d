/**
 * Origins that have sent bytes for which there was no request, and whose connections are therefore not used again for a while.
 *
 * A server, or a proxy before it, that answers a request twice gives the second answer to the next request of the connection, which may be that of
 * another caller, and the connection stays one answer behind as long as it is never idle. A connection that was idle shows it; those in use at the
 * same time do not.
 */

/** Long enough for all connections that were in use to end. */
const SUSPECT_MS = 60_000;

export class SuspectOrigins {
  /** The time until which each is one. */
  readonly #until = new Map<string, number>();

  add(key: string): void {
    const now = performance.now();
    for (const [known, until] of this.#until) if (until <= now) this.#until.delete(known);
    this.#until.set(key, now + SUSPECT_MS);
  }

  has(key: string): boolean {
    if (this.#until.size === 0) return false;
    return (this.#until.get(key) ?? 0) > performance.now();
  }
}
