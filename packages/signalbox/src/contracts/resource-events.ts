/**
 * How areas tell each other that a resource of theirs is gone, without knowing each other: the owner announces, whoever keeps
 * something about the resource (its tags) listens. Listeners run before the owner's delete is answered.
 */
export interface ResourceRef {
  readonly accountId: string;
  /** Resource type as in tags: `ai_gateway`, `agent`, `webhook_source`, `api_token`, `account`. */
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
