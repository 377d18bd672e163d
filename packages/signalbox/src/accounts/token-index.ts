/**
 * Every token of the installation in memory, found by hash: the check on each request costs one SHA-256 and one map look-up,
 * and no database.
 *
 * Timing: the map is keyed by the SHA-256 of what the client sent, so the time of a look-up says nothing about stored tokens;
 * the final comparison is constant-time all the same. Text that is not token-shaped is turned away before hashing.
 */
import { hash, timingSafeEqual } from "node:crypto";
import { isTokenShaped } from "@signalbox/protocol";
import type { Token } from "./token.ts";

interface Entry {
  readonly token: Token;
  readonly digest: Buffer;
  /** Time of the last use that `takeUses` has not handed out yet; 0 for none. */
  usedAt: number;
}

export class TokenIndex {
  /** Keyed by the digest's bytes as a latin1 string, the cheapest text of 32 bytes. */
  readonly #byDigest = new Map<string, Entry>();
  readonly #byId = new Map<string, Entry>();
  #used: Entry[] = [];

  get size(): number {
    return this.#byId.size;
  }

  add(token: Token): void {
    const digest = Buffer.from(token.hash, "hex");
    const entry: Entry = { token, digest, usedAt: 0 };
    this.#byDigest.set(digest.toString("latin1"), entry);
    this.#byId.set(token.id, entry);
  }

  remove(id: string): void {
    const entry = this.#byId.get(id);
    if (entry === undefined) return;
    this.#byId.delete(id);
    this.#byDigest.delete(entry.digest.toString("latin1"));
  }

  findById(id: string): Token | undefined {
    return this.#byId.get(id)?.token;
  }

  /** The live token with this text, or undefined when it is unknown, revoked or expired at `now`. */
  findByText(text: string, now: number): Token | undefined {
    if (!isTokenShaped(text)) return undefined;
    const digest = hash("sha256", text, "buffer");
    const entry = this.#byDigest.get(digest.toString("latin1"));
    if (entry === undefined || !timingSafeEqual(digest, entry.digest)) return undefined;
    const { token } = entry;
    if (token.expiresAt !== null && token.expiresAt <= now) return undefined;
    // A note on the entry instead of a map of times: a first use is remembered once, every further one is a single store.
    if (entry.usedAt === 0) this.#used.push(entry);
    entry.usedAt = now;
    return token;
  }

  /** Time of a use since the last `takeUses`, if there was one. */
  lastUse(id: string): number | undefined {
    return this.#byId.get(id)?.usedAt || undefined;
  }

  /** The last use of every token used since the last call. */
  takeUses(): { id: string; time: number }[] {
    const uses = this.#used.map(({ token, usedAt }) => ({ id: token.id, time: usedAt }));
    for (const entry of this.#used) entry.usedAt = 0;
    this.#used = [];
    return uses;
  }

  clear(): void {
    this.#byDigest.clear();
    this.#byId.clear();
    this.#used = [];
  }
}

export function hashToken(text: string): string {
  return hash("sha256", text, "hex");
}
