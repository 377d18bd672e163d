/** One change of one resource's tags, and what it does to the tags that are there: no storage, so a dry run is the same code. */
import { canonicalTags, parseCanonicalTags, type Tags } from "@signalbox/protocol";
import { type EtagCondition, etagOf, satisfiesCondition } from "../etag.ts";
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
