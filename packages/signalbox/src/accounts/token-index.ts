/**
 * Every token of the installation in memory, found by hash: the check on each request costs one SHA-256 and one map look-up,
 * and no database.
 *
 * A connection that says the same text again is spared both: what it said last is remembered, with the token that it was. The token is
 * still looked at each time, so a revoked or expired one is refused on every connection at once.
 *
 * Timing: the map is keyed by the SHA-256 of what the client sent, so the time of a look-up says nothing about stored tokens;
 * the final comparison is constant-time all the same, and so is the one with what a
 * connection said before (a proxy may send many callers through one). Text that is not token-shaped is turned away before hashing.
 */
import { hash, timingSafeEqual } from "node:crypto";
import { isTokenShaped } from "@signalbox/protocol";
import type { Token } from "./token.ts";

interface Entry {
  readonly token: Token;
  readonly digest: Buffer;
  /** Time of the last use that `takeUses` has not handed out yet; 0 for none. */
  usedAt: number;
  isRemoved: boolean;
}

interface Said {
  readonly text: string;
  readonly entry: Entry;
}

export class TokenIndex {
  /** Keyed by the digest's bytes as a latin1 string, the cheapest text of 32 bytes. */
  readonly #byDigest = new Map<string, Entry>();
  readonly #byId = new Map<string, Entry>();
  readonly #saidBy = new WeakMap<object, Said>();
  #used: Entry[] = [];

  get size(): number {
    return this.#byId.size;
  }

  add(token: Token): void {
    const digest = Buffer.from(token.hash, "hex");
    const entry: Entry = { token, digest, usedAt: 0, isRemoved: false };
    this.#byDigest.set(digest.toString("latin1"), entry);
    this.#byId.set(token.id, entry);
  }

  remove(id: string): void {
    const entry = this.#byId.get(id);
    if (entry === undefined) return;
    entry.isRemoved = true;
    this.#byId.delete(id);
    this.#byDigest.delete(entry.digest.toString("latin1"));
  }

  findById(id: string): Token | undefined {
    return this.#byId.get(id)?.token;
  }

  /** The live token with this text, or undefined when it is unknown, revoked or expired at `now`; `connection` is who says it. */
  findByText(text: string, now: number, connection: object | null = null): Token | undefined {
    const entry = this.#entryOf(text, connection);
    if (entry === undefined) return undefined;
    const { token } = entry;
    if (token.expiresAt !== null && token.expiresAt <= now) return undefined;
    // A note on the entry instead of a map of times: a first use is remembered once, every further one is a single store.
    if (entry.usedAt === 0) this.#used.push(entry);
    entry.usedAt = now;
    return token;
  }

  #entryOf(text: string, connection: object | null): Entry | undefined {
    const said = connection === null ? undefined : this.#saidBy.get(connection);
    if (said !== undefined && !said.entry.isRemoved && isSameText(said.text, text)) return said.entry;
    if (!isTokenShaped(text)) return undefined;
    const digest = hash("sha256", text, "buffer");
    const entry = this.#byDigest.get(digest.toString("latin1"));
    if (entry === undefined || !timingSafeEqual(digest, entry.digest)) return undefined;
    if (connection !== null) this.#saidBy.set(connection, { text, entry });
    return entry;
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

  /** Uses that could not be stored; one that was used again meanwhile keeps its later time, one that is gone is forgotten. */
  putBackUses(uses: readonly { readonly id: string; readonly time: number }[]): void {
    for (const { id, time } of uses) {
      const entry = this.#byId.get(id);
      if (entry === undefined || entry.usedAt !== 0) continue;
      entry.usedAt = time;
      this.#used.push(entry);
    }
  }

  clear(): void {
    for (const entry of this.#byId.values()) entry.isRemoved = true;
    this.#byDigest.clear();
    this.#byId.clear();
    this.#used = [];
  }
}

/** In a time that depends on the lengths alone. */
function isSameText(a: string, b: string): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i);
  return difference === 0;
}

export function hashToken(text: string): string {
  return hash("sha256", text, "hex");
}
