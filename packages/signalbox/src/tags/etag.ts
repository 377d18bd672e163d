/**
 * The etag of a set of tags: a hash of its content, so equal sets have equal etags on any resource, and a set that was changed and
 * changed back has its old etag again. Clients treat it as opaque.
 */
import { hash } from "node:crypto";
import { SignalboxError } from "@signalbox/protocol";

/** 128 bits are plenty to tell two sets apart. */
const HASH_BYTES = 16;

export const EMPTY_TAGS = "{}";

export function etagOf(canonicalTags: string): string {
  const digest = hash("sha256", canonicalTags, "buffer");
  return `v1:${digest.subarray(0, HASH_BYTES).toString("base64url")}`;
}

export const EMPTY_ETAG: string = etagOf(EMPTY_TAGS);

/** An `If-Match` header: any of these etags, or (`*`) any resource that has a record. */
export type EtagCondition = "exists" | ReadonlySet<string>;

/** An etag quoted, as HTTP wants it, or bare, as the public SDK sends what it found in the body. */
const ETAG = /^(?:(W\/)?"([^"]*)"|([^\s",*]+))$/;
/** Elements of a list; a comma between quotes belongs to its etag. */
const ELEMENTS = /(?:[^",]|"[^"]*"?)+/g;

/**
 * RFC 9110, section 13.1.1: `*` alone, or a list of etags, whose empty elements are skipped. The comparison is the strong one, so a weak
 * etag (`W/"…"`) never matches. A header that says nothing is refused: the writer meant a condition, and its etag got lost on the way.
 */
export function parseIfMatch(header: string | undefined): EtagCondition | null {
  if (header === undefined) return null;
  if (header.trim() === "*") return "exists";
  const elements = (header.match(ELEMENTS) ?? []).map((part) => part.trim()).filter((part) => part !== "");
  if (elements.length === 0) throw invalid("If-Match is empty; leave it out to write unconditionally");
  const etags = new Set<string>();
  for (const element of elements) {
    const match = ETAG.exec(element);
    if (match === null) throw invalid("If-Match must be * or a list of etags");
    const [, weak, quoted, bare] = match;
    if (weak === undefined) etags.add(quoted ?? bare ?? "");
  }
  return etags;
}

/** `etag` is null for a resource without a record, which has the tags of the empty set but does not exist. */
export function satisfiesCondition(condition: EtagCondition | null, etag: string | null): boolean {
  if (condition === null) return true;
  return condition === "exists" ? etag !== null : condition.has(etag ?? EMPTY_ETAG);
}

function invalid(message: string): SignalboxError {
  return new SignalboxError("invalid_request", { message });
}
