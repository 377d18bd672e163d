/**
 * Every token of the installation in memory, found by hash: the check on each request costs one SHA-256 and one map look-up,
 * and no database.
 *
 * Timing: the map is keyed by the SHA-256 of what the client sent, so the time of a look-up says nothing about stored tokens;
 * the final comparison is constant-time all the same. Text that is not token-shaped is turned away before hashing.
 */
import { hash as digest, timingSafeEqual } from "node:crypto";
import { isTokenShaped } from "@signalbox/protocol";
import type { Token } from "./token.ts";

export class TokenIndex {
  readonly #byHash = new Map<string, Token>();
  readonly #byId = new Map<string, Token>();

  get size(): number {
    return this.#byId.size;
  }

  add(token: Token): void {
    this.#byHash.set(token.hash, token);
    this.#byId.set(token.id, token);
  }

  remove(id: string): void {
    const token = this.#byId.get(id);
    if (token === undefined) return;
    this.#byId.delete(id);
    this.#byHash.delete(token.hash);
  }

  findById(id: string): Token | undefined {
    return this.#byId.get(id);
  }

  /** The live token with this text, or undefined when it is unknown, revoked or expired at `now`. */
  findByText(text: string, now: number): Token | undefined {
    if (!isTokenShaped(text)) return undefined;
    const hash = hashToken(text);
    const token = this.#byHash.get(hash);
    if (token === undefined || !timingSafeEqual(Buffer.from(hash), Buffer.from(token.hash))) return undefined;
    return token.expiresAt !== null && token.expiresAt <= now ? undefined : token;
  }

  clear(): void {
    this.#byHash.clear();
    this.#byId.clear();
  }
}

export function hashToken(text: string): string {
  return digest("sha256", text, "hex");
}
