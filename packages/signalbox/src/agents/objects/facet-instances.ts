/** The instances of facets. They are loaded only through their parent, which knows how to construct them. */
import { sql } from "../../core/sql.ts";
import { InstanceElsewhereError } from "../../engines/instance-store/index.ts";
import type { Directory } from "../instance/directory.ts";
import { type InstanceRef, keyOf } from "../instance/instance-ref.ts";
import type { ResidentDefinition } from "../instance/resident.ts";
import type { LiveObject, ObjectSpec } from "./live-object.ts";
import { type FacetHost, facetInstanceName, type FacetSpec } from "./object-facets.ts";
import { createId } from "./object-id.ts";
import { createObjectStub, localCalls } from "./object-stub.ts";
import type { ObjectId, ObjectStub } from "./object-types.ts";
import { workerBinding } from "./worker-binding.ts";

export interface FacetInstancesParts {
  readonly directory: Directory;
  readonly account: string;
  /** The class of the parent, in the catalog. */
  readonly agent: string;
  readonly define: (spec: () => Promise<ObjectSpec>) => ResidentDefinition<LiveObject>;
  readonly classOf: FacetHost["classOf"];
  /** The worker of the parent's class. */
  readonly worker: string;
  /** Takes a facet from the node where its parent was before. */
  readonly claim: (ref: InstanceRef) => Promise<void>;
}

/** Names of objects are hexadecimal; those of facets have a dot for each level. */
export function isFacetName(instanceName: string): boolean {
  return instanceName.includes(".");
}

export class FacetInstances implements FacetHost {
  readonly #parts: FacetInstancesParts;

  constructor(parts: FacetInstancesParts) {
    this.#parts = parts;
  }

  classOf(value: unknown): ReturnType<FacetHost["classOf"]> {
    return this.#parts.classOf(value);
  }

  stub(instanceName: string, start: () => Promise<FacetSpec>): ObjectStub {
    const { account, define, directory } = this.#parts;
    const definition = define(async () => toSpec(await start(), this.#parts.worker));
    const key = keyOf(this.#ref(instanceName));
    // A facet is where its parent is.
    const calls = localCalls(async (kind, label, body) => {
      const run = () => directory.get(definition, account, instanceName, key).run({ kind, label, body });
      try {
        return await run();
      } catch (error) {
        if (!(error instanceof InstanceElsewhereError)) throw error;
        await this.#parts.claim(this.#ref(instanceName));
        return run();
      }
    });
    return createObjectStub(null, null, calls);
  }

  abort(instanceName: string, reason: Error): void {
    this.#parts.directory.find(this.#ref(instanceName))?.abort(reason);
  }

  async remove(instanceName: string): Promise<void> {
    const { directory } = this.#parts;
    const ref = this.#ref(instanceName);
    if (!(await directory.exists(ref))) return;
    // It may still belong to the node where its parent was before.
    if (isFacetName(instanceName)) await this.#parts.claim(ref);
    const nested = await directory.read(ref, "facets", ({ database }) =>
      database.all<{ name: string }>(sql`SELECT name FROM _signalbox_facet`),
    );
    for (const { name } of nested) await this.remove(facetInstanceName(instanceName, name));
    directory.find(ref)?.abort(new Error("The object was deleted."));
    await directory.destroy(ref);
  }

  #ref(name: string): InstanceRef {
    const { account, agent } = this.#parts;
    return { account, agent, name };
  }
}

function toSpec({ objectClass, id, props }: FacetSpec, worker: string): ObjectSpec {
  return {
    objectClass,
    id: () => toId(id),
    name: undefined,
    props,
    binding: workerBinding(worker),
    isFacet: true,
  };
}

function toId(id: ObjectId | string): ObjectId {
  return typeof id === "string" ? createId(id, undefined) : id;
}
