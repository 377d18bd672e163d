/**
 * How long the other nodes have been silent, as this one has seen it.
 *
 * The age of a heartbeat alone does not tell a dead node from a server, or a whole machine, that has stalled: then every node is late, and the first
 * one that goes on must not declare the others dead.
 */
import type { SilentNode } from "./node-table.ts";

/** Own heartbeats without one of the other node in between. A node that dies is silent for five of them before its time is over. */
const MIN_MISSED = 4;

interface Seen {
  readonly beats: string;
  readonly missed: number;
}

export class Silences {
  readonly #since: number;
  #seen: ReadonlyMap<string, Seen> = new Map();

  /** `since`: when this node got its session, by the monotonic clock. The other nodes may need as long as they may be silent to get theirs. */
  constructor(since: number) {
    this.#since = since;
  }

  /** Called with each heartbeat of this node. Returns the incarnations that seem to be dead. */
  findDead(others: readonly SilentNode[], sentAt: number): string[] {
    const before = this.#seen;
    this.#seen = new Map(
      others.map(({ inc, beats }) => [inc, { beats, missed: missedOf(before.get(inc), beats) }]),
    );
    return others
      .filter(({ inc, ageMs, deadAfterMs }) => {
        const missed = this.#seen.get(inc)?.missed ?? 0;
        return ageMs > deadAfterMs && missed >= MIN_MISSED && sentAt - this.#since > deadAfterMs;
      })
      .map(({ inc }) => inc);
  }
}

function missedOf(seen: Seen | undefined, beats: string): number {
  return seen?.beats === beats ? seen.missed + 1 : 0;
}
