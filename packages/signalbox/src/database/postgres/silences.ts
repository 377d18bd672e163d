/**
 * How long the other nodes have been silent, as this one has seen it.
 *
 * The age of a heartbeat alone does not tell a dead node from a server, or a whole machine, that has stalled: then every node is late, and the first
 * one that goes on must not declare the others dead. Nor does a clock of PostgreSQL that was set back, for example because the standby that replaced
 * it has another one: then no node is late, and the time for which this node has seen no heartbeat counts instead.
 */
import type { SilentNode } from "./node-table.ts";

/** Own heartbeats without one of the other node in between. A node that dies is silent for five of them before its time is over. */
const MIN_MISSED = 4;

interface Seen {
  readonly beats: string;
  readonly missed: number;
  /** When the number was seen first, by the monotonic clock. */
  readonly at: number;
}

/** Times of the monotonic clock: of the question and of its answer. */
export interface Look {
  readonly sentAt: number;
  readonly receivedAt: number;
}

export class Silences {
  readonly #since: number;
  #seen: ReadonlyMap<string, Seen> = new Map();

  /** `since`: when this node got its session, by the monotonic clock. The other nodes may need as long as they may be silent to get theirs. */
  constructor(since: number) {
    this.#since = since;
  }

  /** Called with each heartbeat of this node. Returns those that seem to be dead. */
  findDead<Node extends SilentNode>(others: readonly Node[], look: Look): Node[] {
    const before = this.#seen;
    this.#seen = new Map(others.map(({ inc, beats }) => [inc, nextOf(before.get(inc), beats, look)]));
    return others.filter(({ inc, ageMs, deadAfterMs }) => {
      const { missed = 0, at = look.sentAt } = this.#seen.get(inc) ?? {};
      // From the answer that had the heartbeat first to the last question: no heartbeat was between them.
      const silentMs = Math.max(ageMs, look.sentAt - at);
      return silentMs > deadAfterMs && missed >= MIN_MISSED && look.sentAt - this.#since > deadAfterMs;
    });
  }
}

function nextOf(seen: Seen | undefined, beats: string, { receivedAt }: Look): Seen {
  return seen?.beats === beats ? { ...seen, missed: seen.missed + 1 } : { beats, missed: 0, at: receivedAt };
}
