/** The resource types an installation knows: the built-in ones and those of its configuration. */
import { SignalboxError, TAG_RESOURCE_TYPES, type TagResourceType } from "@signalbox/protocol";

export type ConfiguredResourceType = string | { readonly name: string; readonly scope: "account" | "zone" };

export class ResourceTypes {
  readonly #byName: ReadonlyMap<string, TagResourceType>;

  /** A configured type with the name of a built-in one replaces it. */
  constructor(configured: readonly ConfiguredResourceType[]) {
    const added = configured.map((type): TagResourceType =>
      typeof type === "string" ? { name: type, scope: "account" } : type,
    );
    this.#byName = new Map([...TAG_RESOURCE_TYPES, ...added].map((type) => [type.name, type]));
  }

  /**
   * The type, or 1006. An account's path takes every type; a zone's path takes those that belong to zones, since nothing else can
   * be told apart by one.
   */
  require(name: string, isInZone: boolean): TagResourceType {
    const type = this.#byName.get(name);
    if (type === undefined || (isInZone && type.scope !== "zone")) {
      throw new SignalboxError("tags_invalid_resource_type");
    }
    return type;
  }
}
