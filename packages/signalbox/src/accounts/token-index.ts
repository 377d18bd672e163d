/**
 * All tokens of the installation in memory, by hash. Authentication of a request costs one SHA-256 and one map look-up, without I/O.
 *
 * The key of the map is the SHA-256 of the received text, so the duration of a look-up reveals nothing about stored tokens; the final comparison
 * takes constant time. Text without the form of a token is refused before hashing.
 */
import { hash, timingSafeEqual } from "node:crypto";
import { isTokenShaped } from "@signalbox/protocol";
import type { Token } from "./token.ts";

interface Entry {
  readonly token: Token;
  readonly digest: Buffer;
  /** Time of the last use since `takeUses`; 0 if there was none. */
  usedAt: number;
}

export class TokenIndex {
  /** By the bytes of the digest as latin1 text. */
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

  /** Returns the live token with this text; undefined if it is unknown, revoked, or expired at `now`. */
  findByText(text: string, now: number): Token | undefined {
    if (!isTokenShaped(text)) return undefined;
    const digest = hash("sha256", text, "buffer");
    const entry = this.#byDigest.get(digest.toString("latin1"));
    if (entry === undefined || !timingSafeEqual(digest, entry.digest)) return undefined;
    const { token } = entry;
    if (token.expiresAt !== null && token.expiresAt <= now) return undefined;
    // Only the first use adds the entry to the list; further uses only set the time.
    if (entry.usedAt === 0) this.#used.push(entry);
    entry.usedAt = now;
    return token;
  }

  /** Returns the time of the last use since `takeUses`, if any. */
  lastUse(id: string): number | undefined {
    return this.#byId.get(id)?.usedAt || undefined;
  }

  /** Returns and clears the last use of each token that was used since the previous call. */
  takeUses(): { id: string; time: number }[] {
    const uses = this.#used.map(({ token, usedAt }) => ({ id: token.id, time: usedAt }));
    for (const entry of this.#used) entry.usedAt = 0;
    this.#used = [];
    return uses;
  }

  /** Restores uses that could not be stored. A later use of a token takes precedence; revoked tokens are ignored. */
  putBackUses(uses: readonly { readonly id: string; readonly time: number }[]): void {
    for (const { id, time } of uses) {
      const entry = this.#byId.get(id);
      if (entry === undefined || entry.usedAt !== 0) continue;
      entry.usedAt = time;
      this.#used.push(entry);
    }
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
