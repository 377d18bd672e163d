/**
 * One write of the tags of one resource, its condition, and its effect on the current tags. Nothing here touches storage, so a dry run uses the
 * same code.
 *
 * The etag of a set of tags is a hash of its content: equal sets have equal etags on every resource, and a set that was changed and changed back
 * has its old etag again. Clients treat it as opaque.
 */
import { hash } from "node:crypto";
import { canonicalTags, parseCanonicalTags, SignalboxError, type Tags } from "@signalbox/protocol";
import type { ResourceKey, TaggedResource } from "./resource-row.ts";

/** `resource_deleted`: the resource itself is gone, and its tags with it. */
export type TagAction = "set" | "patch" | "delete" | "resource_deleted";

export interface TagWrite {
  readonly action: TagAction;
  readonly resource: ResourceKey;
  /** The whole set, or for a patch what changes: null removes a key. Empty for deletions. */
  readonly tags: ReadonlyMap<string, string | null>;
  /** Human-readable name; undefined leaves the one known, or the id. */
  readonly name?: string | undefined;
  readonly condition: EtagCondition | null;
  /** Who asks, for the history. */
  readonly actor: string;
}

export type WriteOutcome =
  | { readonly kind: "stored"; readonly resource: TaggedResource }
  | { readonly kind: "deleted" }
  /** A merge that left a resource without a record as it was. */
  | { readonly kind: "untagged"; readonly resource: ResourceKey }
  | { readonly kind: "refused"; readonly reason: "tags_etag_mismatch" | "tags_too_many_tags" };

/** What follows from a write: refused, nothing to do, or a new state (null: the record goes). */
export type WriteEffect =
  | { readonly kind: "refused"; readonly reason: "tags_etag_mismatch" | "tags_too_many_tags" }
  | { readonly kind: "unchanged" }
  | { readonly kind: "changed"; readonly next: TaggedResource | null; readonly hasNewTags: boolean };

export interface WriteRules {
  readonly maxTagsPerResource: number;
  readonly now: number;
}

/** `current` is null for a resource without a record; `lastUpdatedAt` is the time of its last change, if any, also of a deletion. */
export function effectOf(
  write: TagWrite,
  current: TaggedResource | null,
  lastUpdatedAt: number,
  rules: WriteRules,
): WriteEffect {
  if (!satisfiesCondition(write.condition, current?.etag ?? null)) {
    return { kind: "refused", reason: "tags_etag_mismatch" };
  }
  if (write.action === "delete" || write.action === "resource_deleted") {
    return current === null ? { kind: "unchanged" } : { kind: "changed", next: null, hasNewTags: true };
  }
  const tags = nextTags(write, current);
  // Removing keys from a resource that has none must not make one that reads as tagged.
  if (write.action === "patch" && current === null && tags.size === 0) return { kind: "unchanged" };
  if (tags.size > rules.maxTagsPerResource) return { kind: "refused", reason: "tags_too_many_tags" };
  const text = canonicalTags(tags);
  const name = write.name ?? current?.name ?? write.resource.id;
  const hasNewTags = text !== current?.tags;
  if (current !== null && !hasNewTags && name === current.name) return { kind: "unchanged" };
  // Never earlier than before, also when the clock steps back; the same set again is no update.
  const updatedAt = hasNewTags ? Math.max(rules.now, lastUpdatedAt) : lastUpdatedAt;
  const next = { ...write.resource, name, tags: text, etag: etagOf(text), updatedAt };
  return { kind: "changed", next, hasNewTags };
}

export function outcomeOf(
  write: TagWrite,
  effect: WriteEffect,
  current: TaggedResource | null,
): WriteOutcome {
  switch (effect.kind) {
    case "refused":
      return effect;
    case "unchanged":
      if (current !== null) return { kind: "stored", resource: current };
      return write.action === "patch" ? { kind: "untagged", resource: write.resource } : { kind: "deleted" };
    case "changed":
      return effect.next === null ? { kind: "deleted" } : { kind: "stored", resource: effect.next };
  }
}

function nextTags(write: TagWrite, current: TaggedResource | null): Tags {
  if (write.action === "set") return write.tags as Tags;
  const tags = current === null ? new Map<string, string>() : parseCanonicalTags(current.tags);
  for (const [key, value] of write.tags) {
    if (value === null) tags.delete(key);
    else tags.set(key, value);
  }
  return tags;
}

/** 128 bits are enough to tell two sets apart. */
const HASH_BYTES = 16;

export const EMPTY_TAGS = "{}";

export function etagOf(canonicalTags: string): string {
  const digest = hash("sha256", canonicalTags, "buffer");
  return `v1:${digest.subarray(0, HASH_BYTES).toString("base64url")}`;
}

export const EMPTY_ETAG: string = etagOf(EMPTY_TAGS);

/** An `If-Match` header: one of these etags, or (`*`) any resource that has a record. */
export type EtagCondition = "exists" | ReadonlySet<string>;

/** A quoted etag, as in HTTP, or a bare one: the public SDK sends what it found in a body. */
const ETAG = /^(?:(W\/)?"([^"]*)"|([^\s",*]+))$/;
/** Elements of a list; a comma between quotes is part of an etag. */
const ELEMENTS = /(?:[^",]|"[^"]*"?)+/g;

/**
 * RFC 9110, section 13.1.1: `*` alone, or a list of etags, whose empty elements are skipped. The comparison is strong: a weak etag (`W/"…"`) never
 * matches. An empty header is refused, because its sender meant to write a condition.
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

/** `etag` is null for a resource without a record: it has the etag of the empty set, and does not exist for `*`. */
export function satisfiesCondition(condition: EtagCondition | null, etag: string | null): boolean {
  if (condition === null) return true;
  return condition === "exists" ? etag !== null : condition.has(etag ?? EMPTY_ETAG);
}

function invalid(message: string): SignalboxError {
  return new SignalboxError("invalid_request", { message });
}
