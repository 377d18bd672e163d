/**
 * `ctx.facets`: child objects with a database of their own that only their parent can reach. A facet is an instance beside its parent, named by the
 * parent's name and a hash of its own; the parent's database lists its facets.
 */
import { createHash } from "node:crypto";
import { sql } from "../../core/sql.ts";
import type { ObjectClass, ObjectId, ObjectStub } from "./object-types.ts";
import type { StorageParts } from "./storage-parts.ts";

export interface FacetStart {
  /** A class, an entry of `ctx.exports`, or such an entry called with `{ props }`. */
  readonly class: unknown;
  /** The `ctx.id` of the facet; default: that of the parent. */
  readonly id?: ObjectId | string;
  readonly props?: unknown;
}

/** How a facet is constructed. */
export interface FacetSpec {
  readonly objectClass: ObjectClass;
  readonly id: ObjectId | string;
  readonly props: unknown;
}

/** Reaches the instances of facets by the names of the instances. */
export interface FacetHost {
  /** The class that a facet is started with, and the props that it brings along, if any: a class, or what `ctx.exports` has of one. */
  classOf(value: unknown): { readonly objectClass: ObjectClass; readonly props?: unknown };
  /** `start` is called when the facet is not in memory. */
  stub(instanceName: string, start: () => Promise<FacetSpec>): ObjectStub;
  abort(instanceName: string, reason: Error): void;
  /** Removes the facet, what it stored, and its own facets. */
  remove(instanceName: string): Promise<void>;
}

/** As programs without types expect it: any value becomes text. */
const toText: (value: unknown) => string = String;

export class ObjectFacets {
  readonly #host: FacetHost;
  readonly #parentName: string;
  readonly #parentId: ObjectId;
  readonly #parts: StorageParts;
  /** Facets that this object has started since it was loaded. */
  readonly #started = new Set<string>();

  constructor(host: FacetHost, parentName: string, parentId: ObjectId, parts: StorageParts) {
    this.#host = host;
    this.#parentName = parentName;
    this.#parentId = parentId;
    this.#parts = parts;
  }

  /** A stub of the facet. `start` is called when the facet is not in memory. */
  get(name: string, start: () => FacetStart | Promise<FacetStart>): ObjectStub {
    this.#record(name);
    return this.#host.stub(this.#instanceName(name), async () => {
      const { class: given, id = this.#parentId, props } = await start();
      const { objectClass, props: ownProps } = this.#host.classOf(given);
      return { objectClass, id, props: ownProps ?? props };
    });
  }

  /** Ends the facet if it is in memory; what it stored stays. */
  abort(name: string, reason?: unknown): void {
    const error = reason instanceof Error ? reason : new Error(toText(reason ?? "The facet was aborted."));
    this.#host.abort(this.#instanceName(name), error);
  }

  /** Ends the facet and removes what it stored. */
  async delete(name: string): Promise<void> {
    this.#parts.transactions.open();
    this.#parts.database.run(sql`DELETE FROM _signalbox_facet WHERE name = ${encode(name)}`);
    this.#started.delete(name);
    await this.#host.remove(this.#instanceName(name));
  }

  /** The parent ends: so do its facets. */
  abortAll(reason: Error): void {
    for (const name of this.#started) this.#host.abort(this.#instanceName(name), reason);
  }

  #record(name: string): void {
    if (this.#started.has(name)) return;
    this.#parts.transactions.open();
    this.#parts.database.run(
      sql`INSERT INTO _signalbox_facet (name) VALUES (${encode(name)}) ON CONFLICT (name) DO NOTHING`,
    );
    this.#started.add(name);
  }

  #instanceName(name: string): string {
    return facetInstanceName(this.#parentName, encode(name));
  }
}

/** Names of facets may have any character; the text of a database must not have NUL. */
function encode(name: string): string {
  return JSON.stringify(name);
}

/** `encoded` as in the parent's table of facets. */
export function facetInstanceName(parentName: string, encoded: string): string {
  const hash = createHash("sha256").update(encoded).digest("hex").slice(0, 32);
  return `${parentName}.${hash}`;
}
