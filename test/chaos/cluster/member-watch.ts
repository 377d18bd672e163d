/**
 * Which nodes were declared dead, and when, as the table of members says. Only a node that was declared dead may lack a change that was
 * answered, so the oracle needs to know it exactly; the time that a fault lasted says only when it could have happened.
 *
 * The watch has a connection of its own that no fault touches. A node that has the same incarnation, alive, at two readings was alive in
 * between, because a row that was declared dead is never revived.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";

const INTERVAL_MS = 100;
/** A server that hangs is asked again on a new connection. */
const TIMEOUT_MS = 3000;

interface Reading {
  readonly from: number;
  readonly to: number;
  /** Living incarnation by the name of its node. */
  readonly living: ReadonlyMap<string, string>;
}

export class MemberWatch {
  readonly #url: string;
  readonly #readings: Reading[] = [];
  #client: Client | null = null;

  constructor(url: string) {
    this.#url = url;
  }

  /** Reads until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#read();
      await sleep(INTERVAL_MS);
    }
    await this.#client?.end().catch(() => undefined);
  }

  /** Whether the node was no living member at some time between `from` and `to`. True as well if no reading tells otherwise. */
  mayHaveBeenDead(name: string, from: number, to: number): boolean {
    const first = this.#readings.findLastIndex((reading) => reading.to <= from);
    const after = this.#readings.findIndex((reading) => reading.from >= to);
    if (first === -1 || after === -1) return true;
    const incarnations = this.#readings.slice(first, after + 1).map(({ living }) => living.get(name));
    return incarnations.some((inc) => inc === undefined || inc !== incarnations[0]);
  }

  /** Resolves when there is a reading after the time. */
  async readAfter(at: number): Promise<void> {
    while (!((this.#readings.at(-1)?.from ?? -Infinity) >= at)) await sleep(INTERVAL_MS / 4);
  }

  async #read(): Promise<void> {
    const from = performance.now();
    try {
      this.#client ??= await this.#connect();
      const { rows } = await this.#client.query<{ name: string; inc: string }>(
        "SELECT name, inc::text AS inc FROM signalbox_node WHERE state <> 'dead' ORDER BY inc",
      );
      const living = new Map(rows.map(({ name, inc }) => [name, inc]));
      // The same members once more: the last reading lasts longer.
      const [before, last] = this.#readings.slice(-2);
      if (before !== undefined && last !== undefined && isSame(before, living) && isSame(last, living))
        this.#readings.pop();
      this.#readings.push({ from, to: performance.now(), living });
    } catch {
      // PostgreSQL is down.
      this.#client?.end().catch(() => undefined);
      this.#client = null;
    }
  }

  async #connect(): Promise<Client> {
    const client = new Client({
      connectionString: this.#url,
      connectionTimeoutMillis: TIMEOUT_MS,
      query_timeout: TIMEOUT_MS,
    });
    client.on("error", () => undefined);
    await client.connect();
    return client;
  }
}

function isSame({ living }: Reading, other: ReadonlyMap<string, string>): boolean {
  return living.size === other.size && [...living].every(([name, inc]) => other.get(name) === inc);
}
