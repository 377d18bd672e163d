/**
 * A write of the tags of one resource, its condition, and its effect on the current tags. This file does not access the database, so a dry run
 * uses the same code.
 *
 * The etag is a hash of the tags: equal tags have equal etags on every resource, and tags that are changed and changed back have their old etag
 * again. Clients must not interpret it.
 */
import { hash } from "node:crypto";
import { canonicalTags, parseCanonicalTags, type Tags } from "@signalbox/protocol";
import { invalidRequest } from "../../core/invalid-request.ts";
import type { ResourceKey, TaggedResource } from "./resource-row.ts";

/** `resource_deleted`: the resource itself was deleted. */
export type TagAction = "set" | "patch" | "delete" | "resource_deleted";

export interface TagWrite {
  readonly action: TagAction;
  readonly resource: ResourceKey;
  /** All tags; for a patch the changes, where null removes a key; empty for a deletion. */
  readonly tags: ReadonlyMap<string, string | null>;
  /** Human-readable name. Undefined keeps the current name; the default is the id. */
  readonly name?: string | undefined;
  /** `If-Match`: the write is refused unless the resource satisfies it. */
  readonly condition: EtagCondition | null;
  /** `If-None-Match`: the write is refused if the resource satisfies it. */
  readonly except?: EtagCondition | null;
  /** Stored in the history: `root`, `token:<id>` or `system`. */
  readonly actor: string;
  /** One of several writes of a request, which the audit log records together. */
  readonly isPart?: boolean;
}

/** Why a write is refused; a name of the error table. */
export type WriteRefusal = "tags_etag_mismatch" | "tags_too_many_tags";

export type WriteOutcome =
  | { readonly kind: "stored"; readonly resource: TaggedResource }
  | { readonly kind: "deleted" }
  /** A patch without effect on a resource that has no record. */
  | { readonly kind: "untagged"; readonly resource: ResourceKey }
  | { readonly kind: "refused"; readonly reason: WriteRefusal };

/** `next` is the new state of the resource; null deletes the record. */
export type WriteEffect =
  | { readonly kind: "refused"; readonly reason: WriteRefusal }
  | { readonly kind: "unchanged" }
  | { readonly kind: "changed"; readonly next: TaggedResource | null; readonly hasNewTags: boolean };

export interface WriteRules {
  readonly maxTagsPerResource: number;
  readonly now: number;
}

/** `current` is null for a resource without a record. `lastUpdatedAt` is the time of the last change, including a deletion; 0 if there was none. */
export function effectOf(
  write: TagWrite,
  current: TaggedResource | null,
  lastUpdatedAt: number,
  rules: WriteRules,
): WriteEffect {
  const etag = current?.etag ?? null;
  if (!isMet(write.condition, etag, true) || isMet(write.except ?? null, etag, false)) {
    return { kind: "refused", reason: "tags_etag_mismatch" };
  }
  if (write.action === "delete" || write.action === "resource_deleted") {
    return current === null ? { kind: "unchanged" } : { kind: "changed", next: null, hasNewTags: true };
  }
  const tags = nextTags(write, current);
  // A patch that only removes keys does not create a record.
  if (write.action === "patch" && current === null && tags.size === 0) return { kind: "unchanged" };
  if (tags.size > rules.maxTagsPerResource) return { kind: "refused", reason: "tags_too_many_tags" };
  const text = canonicalTags(tags);
  const name = write.name ?? current?.name ?? write.resource.id;
  const hasNewTags = text !== current?.tags;
  if (current !== null && !hasNewTags && name === current.name) return { kind: "unchanged" };
  // The time never decreases, even if the clock is set back. A write of equal tags does not change it.
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

/** 128 bits make a collision practically impossible. */
const HASH_BYTES = 16;

export const EMPTY_TAGS = "{}";

export function etagOf(canonicalTags: string): string {
  const digest = hash("sha256", canonicalTags, "buffer");
  return `v1:${digest.subarray(0, HASH_BYTES).toString("base64url")}`;
}

export const EMPTY_ETAG: string = etagOf(EMPTY_TAGS);

/** Of an `If-Match` or `If-None-Match` header: the resource has one of these etags, or a record (`*`). */
export type EtagCondition = "exists" | ReadonlySet<string>;

/** An etag with quotes, as in HTTP, or without: the public SDK sends the etag of a response body unchanged. */
const ETAG = /^(?:(W\/)?"([^"]*)"|([^\s",*]+))$/;
/** Elements of a list. A comma within quotes is part of an etag. */
const ELEMENTS = /(?:[^",]|"[^"]*"?)+/g;

/**
 * RFC 9110, sections 13.1.1 and 13.1.2: `*` or a list of etags; empty elements are ignored. An empty header is an error, because its sender intended a
 * condition. The comparison of `If-Match` is strong: a weak etag (`W/"…"`) never matches. That of `If-None-Match` is weak.
 */
export function parseIfMatch(header: string | undefined): EtagCondition | null {
  return parseCondition(header, "If-Match");
}

export function parseIfNoneMatch(header: string | undefined): EtagCondition | null {
  return parseCondition(header, "If-None-Match");
}

function parseCondition(
  header: string | undefined,
  name: "If-Match" | "If-None-Match",
): EtagCondition | null {
  if (header === undefined) return null;
  if (header.trim() === "*") return "exists";
  const elements = (header.match(ELEMENTS) ?? []).map((part) => part.trim()).filter((part) => part !== "");
  if (elements.length === 0) throw invalidRequest(`${name} is empty; omit the header to send no condition`);
  const etags = new Set<string>();
  for (const element of elements) {
    const match = ETAG.exec(element);
    if (match === null) throw invalidRequest(`${name} must be * or a list of etags`);
    const [, weak, quoted, bare] = match;
    if (weak === undefined || name === "If-None-Match") etags.add(quoted ?? bare ?? "");
  }
  return etags;
}

/** `etag` is null for a resource without a record: it has the etag of empty tags, but does not satisfy `*`. */
export function isMet(
  condition: EtagCondition | null,
  etag: string | null,
  withoutCondition: boolean,
): boolean {
  if (condition === null) return withoutCondition;
  return condition === "exists" ? etag !== null : condition.has(etag ?? EMPTY_ETAG);
}
