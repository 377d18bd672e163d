/**
 * What an instance has broadcast since it was loaded, for connections that follow it from another node. Nodes resume their sockets one after the other,
 * and the instance does not wait for them: a connection that resumes later first receives what it has missed.
 *
 * Invariants:
 * 1. Nothing is sent twice: only a connection that joins for the first time since the load receives what is kept.
 * 2. The memory is bounded in bytes and in time. A connection that resumes later than that receives the current state only.
 */

/** Nodes follow within a round trip; a node whose link is broken may take longer. */
const KEPT_MS = 5000;
const MAX_BYTES = 256 * 1024;

export interface Broadcast {
  readonly frame: Buffer;
  /** Ids of connections that do not receive it. */
  readonly withoutIds: readonly string[];
  /** A frame of the protocol, which says the state. */
  readonly isState: boolean;
}

export class RecentBroadcasts {
  readonly #onOver: () => void;
  readonly #joined = new Set<string>();
  #kept: Broadcast[] = [];
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;
  readonly #since = performance.now();

  /** `onOver` is called when nothing is kept any more. */
  constructor(onOver: () => void) {
    this.#onOver = onOver;
  }

  joined(id: string): void {
    this.#joined.add(id);
  }

  hasJoined(id: string): boolean {
    return this.#joined.has(id);
  }

  /** The broadcast leaves now. */
  add(broadcast: Broadcast): void {
    const left = this.#since + KEPT_MS - performance.now();
    this.#bytes += broadcast.frame.length;
    if (left <= 0 || this.#bytes > MAX_BYTES) {
      this.stop();
      return;
    }
    this.#kept.push(broadcast);
    this.#timer ??= setTimeout(() => this.stop(), left).unref();
  }

  /** What was broadcast before a connection joined. */
  for(id: string, hasProtocol: boolean): Broadcast[] {
    return this.#kept.filter(
      ({ withoutIds, isState }) => !withoutIds.includes(id) && (hasProtocol || !isState),
    );
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#kept = [];
    this.#onOver();
  }
}
