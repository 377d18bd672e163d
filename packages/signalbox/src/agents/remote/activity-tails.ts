/**
 * Streams of server-sent events about one instance, which follow the instance from node to node.
 *
 * Invariants:
 * 1. When the instance leaves the node of the source, or the source ends otherwise, the stream continues with a source at the new owner. Events in
 *    between are not repeated.
 * 2. Only complete events are passed on: a source that breaks off in the middle of one does not damage the next.
 * 3. `close` ends all streams, so that the listener can close.
 */
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { fullJitterDelay } from "../../core/retry.ts";
import type { InstanceRef } from "../instance/instance-ref.ts";
import type { Placement } from "../placement/placement.ts";

/** Until an owner can be found: without an end. */
const RETRY = { baseDelayMs: 100, maxDelayMs: 2000 };
/** How often a source looks whether its instance still belongs to this node. */
const OWNER_CHECK_MS = 1000;
const EVENT_END = "\n\n";

type OpenSource = (signal: AbortSignal) => Promise<Readable>;

export class ActivityTails {
  readonly #open = new Set<Tail>();

  /** `first` is read until it ends, then sources from `reopen`. */
  follow(first: Readable, reopen: OpenSource): Readable {
    const tail = new Tail(reopen, () => this.#open.delete(tail));
    this.#open.add(tail);
    tail.start(first);
    return tail;
  }

  close(): void {
    for (const tail of this.#open) tail.finish();
  }
}

class Tail extends Readable {
  readonly #reopen: OpenSource;
  readonly #onClose: () => void;
  readonly #closing = new AbortController();
  #source: Readable | null = null;

  constructor(reopen: OpenSource, onClose: () => void) {
    super();
    this.#reopen = reopen;
    this.#onClose = onClose;
  }

  start(first: Readable): void {
    // It never rejects.
    void this.#run(first);
  }

  /** Ends the stream as if it were complete. */
  finish(): void {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    this.#source?.destroy();
    this.push(null);
  }

  override _read(): void {
    this.#source?.resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#closing.abort();
    this.#source?.destroy();
    this.#onClose();
    callback(error);
  }

  async #run(first: Readable): Promise<void> {
    const { signal } = this.#closing;
    let source: Readable | null = first;
    for (let failures = 0; !signal.aborted;) {
      if (source !== null) {
        failures = 0;
        await this.#relay(source);
      }
      if (signal.aborted) break;
      // `close` and the reader end the pause.
      await sleep(fullJitterDelay(++failures, RETRY), undefined, { signal }).catch(() => undefined);
      source = signal.aborted ? null : await this.#reopen(signal).catch(() => null);
    }
    source?.destroy();
  }

  /** Resolves when the source has ended or failed. */
  #relay(source: Readable): Promise<void> {
    this.#source = source;
    let held: Buffer = NOTHING;
    return new Promise((resolve) => {
      source.on("data", (chunk: Buffer) => {
        const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
        const end = bytes.lastIndexOf(EVENT_END);
        const complete = end === -1 ? 0 : end + EVENT_END.length;
        held = bytes.subarray(complete);
        if (this.#closing.signal.aborted || complete === 0) return;
        if (!this.push(bytes.subarray(0, complete))) source.pause();
      });
      // A source fails when its node is lost.
      source.on("error", () => undefined);
      source.once("close", () => {
        this.#source = null;
        resolve();
      });
      if (source.destroyed) resolve();
    });
  }
}

const NOTHING = Buffer.from("");

/** Destroys a source when its instance no longer belongs to this node. */
export function endWhenMoved(source: Readable, ref: InstanceRef, placement: Placement): Readable {
  const check = async () => {
    if ((await placement.find(ref)) !== null) source.destroy();
  };
  // While PostgreSQL cannot be reached, nothing moves.
  const timer = setInterval(() => void check().catch(() => undefined), OWNER_CHECK_MS).unref();
  source.once("close", () => clearInterval(timer));
  return source;
}
