export type Tags = Readonly<Record<string, string>>;

/** A tagged resource in the tags API. */
export interface TaggedResource {
  readonly type: string;
  readonly id: string;
  readonly name: string;
  readonly etag: string;
  readonly tags: Tags;
  readonly tags_updated_at?: string;
  readonly zone_id?: string;
  readonly worker_id?: string;
  readonly access_application_id?: string;
}

/** One entry in the history of a resource. */
export interface TagChange {
  readonly position: string;
  readonly type: string;
  readonly id: string;
  readonly name: string;
  readonly action: "set" | "patch" | "delete" | "resource_deleted";
  readonly actor: string;
  readonly changed_at: string;
  readonly before: Tags | null;
  readonly after: Tags | null;
}

/** Changes by key: a string sets the value, null removes the tag. */
export type TagEdit = Readonly<Record<string, string | null>>;

export function resourceKey({ type, id, zone_id }: Pick<TaggedResource, "type" | "id" | "zone_id">): string {
  return JSON.stringify([type, id, zone_id ?? ""]);
}
