/** The namespace of an object class: ids, and stubs for ids. */
import { kebabCase } from "@signalbox/protocol";
import { isId, type ObjectIds } from "./object-id.ts";
import type { GetOptions, ObjectId, ObjectNamespace, ObjectStub } from "./object-types.ts";

const EXPORT_NAMES = new WeakMap<object, string>();

/** The export that a namespace belongs to; undefined for other values. */
export function exportNameOf(value: unknown): string | undefined {
  return typeof value === "object" && value !== null ? EXPORT_NAMES.get(value) : undefined;
}

export class Namespace implements ObjectNamespace {
  readonly #ids: ObjectIds;
  readonly #stub: (id: ObjectId) => ObjectStub;

  constructor(exportName: string, ids: ObjectIds, stub: (id: ObjectId) => ObjectStub) {
    this.#ids = ids;
    this.#stub = stub;
    EXPORT_NAMES.set(this, exportName);
  }

  get [Symbol.toStringTag](): string {
    return "DurableObjectNamespace";
  }

  newUniqueId(): ObjectId {
    return this.#ids.unique();
  }

  idFromName(name: string): ObjectId {
    return this.#ids.fromName(name);
  }

  idFromString(hex: string): ObjectId {
    return this.#ids.fromString(hex);
  }

  get(id: ObjectId, _options?: GetOptions): ObjectStub {
    if (!isId(id))
      throw new TypeError(
        "Failed to execute 'get' on 'DurableObjectNamespace': parameter 1 is not of type 'DurableObjectId'.",
      );
    return this.#stub(id);
  }

  getByName(name: string, _options?: GetOptions): ObjectStub {
    return this.#stub(this.idFromName(name));
  }

  /** A namespace of the same objects: this server is in one place. */
  jurisdiction(_name: string): ObjectNamespace {
    return this;
  }
}

/** The name of a class in the catalog and in paths. */
export function agentNameOf(exportName: string): string {
  return kebabCase(exportName);
}
