/**
 * Slows down whoever tries credentials: after so many wrong ones within a minute, an address gets 429 for further wrong ones.
 *
 * A right credential is never refused here: several callers may share an address (a proxy, an office), and one of them must not be able to
 * lock out the others. So the credential is judged first, and this is asked only when it was wrong.
 *
 * Memory is bounded: one entry an address, IPv6 by its /64 network, which one attacker owns whole; the oldest entry gives way.
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
  /** In the order in which their windows end. */
  readonly #byNetwork = new Map<string, Entry>();

  /** `now` counts milliseconds and never goes back. */
  constructor(maxFailures: number, now: () => number = () => performance.now()) {
    this.#maxFailures = maxFailures;
    this.#now = now;
  }

  get size(): number {
    return this.#byNetwork.size;
  }

  /** Counts a wrong credential; throws `too_many_failures` for one too many. */
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

/** The address itself for IPv4, the /64 for IPv6. */
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
