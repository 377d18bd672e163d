/** The namespace of an object class: ids, and stubs for ids. */
import { kebabCase } from "@signalbox/protocol";
import { isId, type ObjectIds } from "./object-id.ts";
import type { GetOptions, ObjectId, ObjectNamespace, ObjectStub } from "./object-types.ts";

/** The class that a value of `ctx.exports` stands for. */
export interface ExportedClass {
  readonly exportName: string;
  /** Undefined unless the value was made with props. */
  readonly props?: unknown;
}

const EXPORTED = new WeakMap<object, ExportedClass>();

/** Undefined for values that are neither a namespace nor an export of an object class. */
export function exportedClassOf(value: unknown): ExportedClass | undefined {
  return (typeof value === "object" || typeof value === "function") && value !== null
    ? EXPORTED.get(value)
    : undefined;
}

export class Namespace implements ObjectNamespace {
  readonly #ids: ObjectIds;
  readonly #stub: (id: ObjectId) => ObjectStub;

  constructor(exportName: string, ids: ObjectIds, stub: (id: ObjectId) => ObjectStub) {
    this.#ids = ids;
    this.#stub = stub;
    EXPORTED.set(this, { exportName });
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

/** `ctx.exports.<Class>`: the namespace; called with `{ props }`, the class that a facet with these props is started with. */
export function createExport(exportName: string, namespace: ObjectNamespace): ObjectNamespace {
  const exported = new Proxy((() => undefined) as unknown as ObjectNamespace, {
    get(_target, name) {
      const member = Reflect.get(namespace, name) as unknown;
      return typeof member === "function" ? (member.bind(namespace) as unknown) : member;
    },
    has: (_target, name) => name in namespace,
    getPrototypeOf: () => Object.getPrototypeOf(namespace) as object,
    apply(_target, _this, [options]: [{ readonly props?: unknown }?]) {
      const facetClass = { toString: () => `[class ${exportName}]` };
      EXPORTED.set(facetClass, { exportName, props: options?.props ?? {} });
      return facetClass;
    },
  });
  EXPORTED.set(exported, { exportName });
  return exported;
}

/**
 * The name of an export among those of all workers of the server. Exports of the first worker have their own names. A slash cannot be part of an export's name in a
 * program.
 */
export function exportNameOf(worker: string, name: string): string {
  return worker === "" ? name : `${worker}/${name}`;
}

/** The worker that has the export; empty for the first one. */
export function workerOf(exportName: string): string {
  const end = exportName.indexOf("/");
  return end === -1 ? "" : exportName.slice(0, end);
}

/** The name of a class in the catalog and in paths. */
export function agentNameOf(exportName: string): string {
  return exportName.split("/").map(kebabCase).join(":");
}
