/** What stubs do with objects, and where objects are: in this process, or on any node of a cluster. */
import type { InstanceRef } from "../instance/instance-ref.ts";

/** An object, as every node of a cluster can find it. */
export interface ObjectAddress {
  readonly exportName: string;
  /** The id, which is the name of the instance. */
  readonly id: string;
  /** The name that the caller used; undefined if it used none. */
  readonly name: string | undefined;
}

/** The calls of one stub. They reject with the errors of the instance as they are; `toRemoteError` makes them those of the caller. */
export interface ObjectCalls {
  /** Calls a method or reads a property (`args` null). `args` are copies for the object; the result is one for the caller. */
  invoke(path: readonly string[], args: readonly unknown[] | null): Promise<unknown>;
  fetch(request: Request): Promise<Response>;
}

/** The way to objects, wherever they are. */
export interface ObjectReach {
  /** Calls that go to the node where the object is; `here` are those for an object in this process. */
  callsOf(agent: string, address: ObjectAddress, here: ObjectCalls): ObjectCalls;
  /** The object of WebSockets that are here is on another node: they follow it. Frames that arrive from now on wait. */
  followTo(ref: InstanceRef, node: string | null): void;
  /** Takes a facet from the node where its parent was before. */
  claimFacet(ref: InstanceRef): Promise<void>;
}

/** All objects are in this process. */
export const LOCAL_OBJECTS: ObjectReach = {
  callsOf: (_agent, _address, here) => here,
  followTo: () => undefined,
  claimFacet: () => Promise.resolve(),
};
