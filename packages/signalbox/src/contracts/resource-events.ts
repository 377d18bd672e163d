/**
 * Events for deleted resources: the owning area emits them, and areas that store data about the resource, such as its tags, listen. All listeners
 * complete before the response to the delete request.
 */
export interface ResourceRef {
  readonly accountId: string;
  /** Resource type of the tags area: `ai_gateway`, `agent`, `webhook_source`, `api_token`, `account`. */
  readonly type: string;
  readonly id: string;
}

export type ResourceDeletedListener = (resource: ResourceRef) => Promise<void>;

export class ResourceEvents {
  readonly #listeners: ResourceDeletedListener[] = [];

  onDeleted(listener: ResourceDeletedListener): void {
    this.#listeners.push(listener);
  }

  async deleted(resource: ResourceRef): Promise<void> {
    for (const listener of this.#listeners) await listener(resource);
  }
}
