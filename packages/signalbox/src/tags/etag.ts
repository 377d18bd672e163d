/**
 * The etag of a set of tags: a hash of its content, so equal sets have equal etags on any resource, and a set that was changed and
 * changed back has its old etag again. Clients treat it as opaque.
 */
import { hash } from "node:crypto";

/** 128 bits are plenty to tell two sets apart. */
const HASH_BYTES = 16;

export const EMPTY_TAGS = "{}";

export function etagOf(canonicalTags: string): string {
  const digest = hash("sha256", canonicalTags, "buffer");
  return `v1:${digest.subarray(0, HASH_BYTES).toString("base64url")}`;
}

export const EMPTY_ETAG: string = etagOf(EMPTY_TAGS);

/** An `If-Match` header: any of these etags, or (`*`) any resource that has tags. */
export type EtagCondition = "tagged" | ReadonlySet<string>;

/**
 * Accepts etags quoted, as HTTP wants them, and bare, as the public SDK sends what it found in the body. A weak etag (`W/"…"`) never
 * matches: RFC 9110, section 13.1.1, asks for the strong comparison.
 */
export function parseIfMatch(header: string | undefined): EtagCondition | null {
  if (header === undefined || header.trim() === "") return null;
  const parts = header.split(",").map((part) => part.trim());
  if (parts.includes("*")) return "tagged";
  return new Set(parts.map((part) => /^"(.*)"$/.exec(part)?.[1] ?? part));
}

export function satisfiesCondition(condition: EtagCondition | null, etag: string): boolean {
  if (condition === null) return true;
  return condition === "tagged" ? etag !== EMPTY_ETAG : condition.has(etag);
}
