/**
 * How much the intake takes on at once. Two budgets: bytes of bodies in memory, counted while they arrive, and verified deliveries at
 * work. Over either, the answer is 503 with `Retry-After`: providers try again, and nothing that was accepted is dropped.
 *
 * Bodies that are still arriving do not count as deliveries, so that slow or unsigned senders cannot use up the room of genuine ones.
 */
import { SignalboxError } from "@signalbox/protocol";

/** Long enough for a burst to pass, short against every provider's retry schedule. */
const RETRY_AFTER_SECONDS = "2";

export class Admission {
  readonly #maxInFlight: number;
  readonly #maxBytes: number;
  #inFlight = 0;
  #bytes = 0;

  constructor(limits: { readonly maxInFlight: number; readonly maxBufferedBytes: number }) {
    this.#maxInFlight = limits.maxInFlight;
    this.#maxBytes = limits.maxBufferedBytes;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** True when one more delivery would be let in now. */
  get hasRoom(): boolean {
    return this.#inFlight < this.#maxInFlight;
  }

  get bufferedBytes(): number {
    return this.#bytes;
  }

  /** False when the bytes do not fit; otherwise they count until `releaseBytes`. */
  reserveBytes(count: number): boolean {
    if (this.#bytes + count > this.#maxBytes) return false;
    this.#bytes += count;
    return true;
  }

  releaseBytes(count: number): void {
    this.#bytes -= count;
  }

  /** Throws `overloaded` when too many deliveries are at work. */
  enter(): void {
    if (!this.hasRoom) throw overloaded();
    this.#inFlight += 1;
  }

  leave(): void {
    this.#inFlight -= 1;
  }
}

export function overloaded(headers: Readonly<Record<string, string>> = {}): SignalboxError {
  return new SignalboxError("overloaded", { headers: { ...headers, "retry-after": RETRY_AFTER_SECONDS } });
}
