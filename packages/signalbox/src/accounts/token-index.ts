/**
 * All tokens of the installation in memory, by hash. Authentication of a request costs one SHA-256 and one map look-up, without I/O.
 *
 * The key of the map is the SHA-256 of the received text, so the duration of a look-up reveals nothing about stored tokens; the final comparison
 * takes constant time. Text without the form of a token is refused before hashing.
 *
 * If a connection repeats the token it sent last, hashing and look-up are skipped: the text is compared in constant time with the previous one (a
 * proxy may send the requests of many callers over one connection). Revocation and expiry are checked every time. Hashing every
 * time costs 2 % of the CPU time of a JSON call on 32 connections and 4 % on one (gateway benchmark, alternating rounds).
 *
 * A changed token is a new entry; the old one is marked as removed, so a connection that remembers it looks the text up again.
 */
import { isTokenShaped } from "@signalbox/protocol";
import { hash, timingSafeEqual } from "node:crypto";
import type { Token } from "./token.ts";

interface Entry {
  readonly token: Token;
  readonly digest: Buffer;
  /** The secret before the last rotation, and the token that its callers are given. */
  readonly previous: { readonly digest: Buffer; readonly token: Token; readonly endsAt: number } | null;
  /** Time of the last use since `takeUses`; 0 if there was none. */
  usedAt: number;
  isRemoved: boolean;
}

interface Found {
  readonly text: string;
  readonly entry: Entry;
  readonly token: Token;
  /** The time from which the text is refused; null for the current secret of a token. */
  readonly endsAt: number | null;
}

export class TokenIndex {
  /** By the bytes of the digest as latin1 text. */
  readonly #byDigest = new Map<string, Entry>();
  readonly #byId = new Map<string, Entry>();
  /** Number of tokens by account. */
  readonly #counts = new Map<string, number>();
  /** The token that a connection sent last. */
  readonly #lastOf = new WeakMap<object, Found>();
  #used: Entry[] = [];

  get size(): number {
    return this.#byId.size;
  }

  countOf(accountId: string): number {
    return this.#counts.get(accountId) ?? 0;
  }

  /** Adds a token, or replaces the token with its id. */
  add(token: Token): void {
    const usedAt = this.#byId.get(token.id)?.usedAt ?? 0;
    this.remove(token.id);
    const entry: Entry = {
      token,
      digest: Buffer.from(token.hash, "hex"),
      previous:
        token.previous === null
          ? null
          : {
              digest: Buffer.from(token.previous.hash, "hex"),
              token: { ...token, isByPrevious: true },
              endsAt: token.previous.endsAt,
            },
      usedAt,
      isRemoved: false,
    };
    this.#byDigest.set(entry.digest.toString("latin1"), entry);
    if (entry.previous !== null) this.#byDigest.set(entry.previous.digest.toString("latin1"), entry);
    this.#byId.set(token.id, entry);
    this.#counts.set(token.accountId, this.countOf(token.accountId) + 1);
    if (usedAt !== 0) this.#used.push(entry);
  }

  remove(id: string): void {
    const entry = this.#byId.get(id);
    if (entry === undefined) return;
    entry.isRemoved = true;
    this.#byId.delete(id);
    const { accountId } = entry.token;
    this.#counts.set(accountId, this.countOf(accountId) - 1);
    this.#byDigest.delete(entry.digest.toString("latin1"));
    if (entry.previous !== null) this.#byDigest.delete(entry.previous.digest.toString("latin1"));
  }

  ids(): string[] {
    return [...this.#byId.keys()];
  }

  /** All tokens; those that are added meanwhile may be missing. */
  *tokens(): Generator<Token> {
    for (const { token } of this.#byId.values()) yield token;
  }

  findById(id: string): Token | undefined {
    return this.#byId.get(id)?.token;
  }

  /** Returns the live token with this text; undefined if it is unknown, revoked, disabled, or expired at `now`. */
  findByText(text: string, now: number, connection: object | null = null): Token | undefined {
    const found = this.#find(text, connection);
    if (found === undefined) return undefined;
    const { entry, token, endsAt } = found;
    if (token.isDisabled || (token.expiresAt !== null && token.expiresAt <= now)) return undefined;
    if (endsAt !== null && endsAt <= now) return undefined;
    // Only the first use adds the entry to the list; further uses only set the time.
    if (entry.usedAt === 0) this.#used.push(entry);
    entry.usedAt = now;
    return token;
  }

  #find(text: string, connection: object | null): Found | undefined {
    const last = connection === null ? undefined : this.#lastOf.get(connection);
    if (last !== undefined && !last.entry.isRemoved && isSameText(last.text, text)) return last;
    if (!isTokenShaped(text)) return undefined;
    const digest = hash("sha256", text, "buffer");
    const entry = this.#byDigest.get(digest.toString("latin1"));
    if (entry === undefined) return undefined;
    const { previous } = entry;
    let found: Found;
    if (timingSafeEqual(digest, entry.digest)) found = { text, entry, token: entry.token, endsAt: null };
    else if (previous !== null && timingSafeEqual(digest, previous.digest))
      found = { text, entry, token: previous.token, endsAt: previous.endsAt };
    else return undefined;
    if (connection !== null) this.#lastOf.set(connection, found);
    return found;
  }

  /** Returns the time of the last use since `takeUses`, if any. */
  lastUse(id: string): number | undefined {
    return this.#byId.get(id)?.usedAt || undefined;
  }

  /** Returns and clears the last use of each token that was used since the previous call. */
  takeUses(): { id: string; time: number }[] {
    const uses = this.#used
      .filter(({ isRemoved }) => !isRemoved)
      .map(({ token, usedAt }) => ({ id: token.id, time: usedAt }));
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
}

/** The duration depends only on the lengths. */
function isSameText(a: string, b: string): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i);
  return difference === 0;
}

export function hashToken(text: string): string {
  return hash("sha256", text, "hex");
}
