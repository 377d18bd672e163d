/** What the management interface knows of the objects of a worker program. Their state is the program's: it is not shown. */
import type { InstanceRef } from "../instance/instance-ref.ts";

export interface ManagedObjects {
  /** The classes that the program exports. */
  classes(): readonly { readonly agent: string; readonly exportName: string }[];
  /** The object that has this name in the program, whether or not it exists. */
  named(agent: string, name: string): InstanceRef | null;
  /** The name that the program gave the object; null if it gave none. Does not load the object. */
  nameOf(ref: InstanceRef): Promise<string | null>;
  connectionCount(ref: InstanceRef): number;
  /** Removes the object, its facets, and everything they stored; its connections are cut. */
  destroy(ref: InstanceRef): Promise<void>;
}
