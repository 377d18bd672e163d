/**
 * Limits guessing of credentials: above a number of wrong credentials per minute, an address receives 429 for each further wrong credential.
 *
 * A correct credential is never refused: several clients may share an address (a proxy, an office), and one client must not lock out the
 * others. Callers therefore check the credential first and record only failures.
 *
 * Memory is bounded: one entry per IPv4 address or IPv6 /64 network, because one attacker can own a whole /64; the oldest entry is removed.
 */
import { SignalboxError } from "@signalbox/protocol";

const WINDOW_MS = 60_000;
const MAX_ADDRESSES = 10_000;

interface Entry {
  failures: number;
  readonly endsAt: number;
}

export class FailureThrottle {
  readonly #maxFailures: number;
  readonly #now: () => number;
  /** Ordered by the end of the window. */
  readonly #byNetwork = new Map<string, Entry>();

  /** `now` returns milliseconds of a monotonic clock. */
  constructor(maxFailures: number, now: () => number = () => performance.now()) {
    this.#maxFailures = maxFailures;
    this.#now = now;
  }

  get size(): number {
    return this.#byNetwork.size;
  }

  /** Counts a wrong credential. Throws `too_many_failures` above the limit. */
  record(address: string | undefined): void {
    const now = this.#now();
    const network = networkOf(address ?? "");
    let entry = this.#byNetwork.get(network);
    if (entry === undefined || entry.endsAt <= now) {
      entry = { failures: 0, endsAt: now + WINDOW_MS };
      this.#byNetwork.delete(network);
      this.#makeRoom(now);
      this.#byNetwork.set(network, entry);
    }
    entry.failures += 1;
    if (entry.failures <= this.#maxFailures) return;
    const retryAfter = Math.max(1, Math.ceil((entry.endsAt - now) / 1000));
    throw new SignalboxError("too_many_failures", { headers: { "retry-after": String(retryAfter) } });
  }

  #makeRoom(now: number): void {
    for (const [network, { endsAt }] of this.#byNetwork) {
      if (endsAt > now && this.#byNetwork.size < MAX_ADDRESSES) return;
      this.#byNetwork.delete(network);
    }
  }
}

/** Returns an IPv4 address unchanged, and the /64 network of an IPv6 address. */
function networkOf(address: string): string {
  const text = address.replace(/%.*$/, "").toLowerCase();
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(text)?.[1];
  if (mapped !== undefined) return mapped;
  if (!text.includes(":")) return text;
  const [head = "", tail] = text.split("::");
  const first = head === "" ? [] : head.split(":");
  const last = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - first.length - last.length }, () => "0");
  return [...first, ...zeros, ...last].slice(0, 4).join(":");
}
