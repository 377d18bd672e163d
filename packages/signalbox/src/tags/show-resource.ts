/** The JSON of tagged resources and of changes. Tags are stored as JSON, so the JSON of a resource is concatenated and not serialized again. */
import type { TagChange } from "../contracts/tag-feed.ts";
import { z } from "zod";
import { EMPTY_ETAG, EMPTY_TAGS } from "./store/tag-write.ts";
import type { ResourceText } from "./store/resource-cache.ts";
import type { ResourceKey, TaggedResource } from "./store/resource-row.ts";

export const resourceResult = z.object({
  type: z.string(),
  id: z.string(),
  name: z.string(),
  etag: z.string(),
  tags: z.record(z.string(), z.string()),
  tags_updated_at: z.iso.datetime().optional(),
  zone_id: z.string().optional(),
  worker_id: z.string().optional(),
  access_application_id: z.string().optional(),
});

export function resourceText(resource: TaggedResource): ResourceText {
  return { json: resourceJson(resource), etag: `"${resource.etag}"` };
}

export function resourceJson(resource: TaggedResource): string {
  return (
    `{"type":${JSON.stringify(resource.type)},"id":${JSON.stringify(resource.id)},"name":${JSON.stringify(resource.name)},` +
    `"etag":"${resource.etag}","tags":${resource.tags},"tags_updated_at":"${new Date(resource.updatedAt).toISOString()}"` +
    `${scopeJson(resource)}}`
  );
}

/** The JSON of a resource without tags: an empty set, without a time. */
export function untaggedJson(resource: ResourceKey): string {
  return (
    `{"type":${JSON.stringify(resource.type)},"id":${JSON.stringify(resource.id)},"name":${JSON.stringify(resource.id)},` +
    `"etag":"${EMPTY_ETAG}","tags":${EMPTY_TAGS}${scopeJson(resource)}}`
  );
}

export const changeResult = z.object({
  position: z.string(),
  type: z.string(),
  id: z.string(),
  name: z.string(),
  zone_id: z.string().optional(),
  worker_id: z.string().optional(),
  access_application_id: z.string().optional(),
  action: z.enum(["set", "patch", "delete", "resource_deleted"]),
  actor: z.string(),
  changed_at: z.iso.datetime(),
  before: z.record(z.string(), z.string()).nullable(),
  after: z.record(z.string(), z.string()).nullable(),
});

export function showChange(change: TagChange): z.input<typeof changeResult> {
  const { resource } = change;
  return {
    position: String(change.position),
    type: resource.type,
    id: resource.id,
    name: resource.name,
    ...scopeOf(resource),
    action: change.action,
    actor: change.actor,
    changed_at: new Date(change.changedAt).toISOString(),
    before: change.before,
    after: change.after,
  };
}

function scopeJson(resource: ResourceKey): string {
  if (resource.zoneId === "" && resource.parentId === "") return "";
  return `,${JSON.stringify(scopeOf(resource)).slice(1, -1)}`;
}

export function scopeOf(resource: ResourceKey): {
  zone_id?: string;
  worker_id?: string;
  access_application_id?: string;
} {
  const parentField = resource.type === "worker_version" ? "worker_id" : "access_application_id";
  return {
    ...(resource.zoneId === "" ? {} : { zone_id: resource.zoneId }),
    ...(resource.parentId === "" ? {} : { [parentField]: resource.parentId }),
  };
}
