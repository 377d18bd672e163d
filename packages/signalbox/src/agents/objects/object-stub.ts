/**
 * Stubs of objects: every call is an output of the caller (it leaves when everything that the caller wrote is durable) and an event of the object.
 */
import { currentWork } from "./current-work.ts";
import { fetchFollowing } from "./follow-redirects.ts";
import type { LiveObject } from "./live-object.ts";
import type { ObjectAddress, ObjectCalls } from "./object-calls.ts";
import type { ObjectId, ObjectStub } from "./object-types.ts";
import { toRemoteError } from "./remote-error.ts";
import { createStub } from "./rpc-stub.ts";
import { transferArguments } from "./rpc-values.ts";

/** Runs a function on an object, which is loaded if it is not in memory. */
export type RunOnObject = <T>(
  kind: "request" | "rpc",
  label: string,
  body: (live: LiveObject) => Promise<T>,
) => Promise<T>;

/** The calls of an object in this process. */
export function localCalls(run: RunOnObject): ObjectCalls {
  return {
    invoke: (path, args) => run("rpc", path.join("."), (live) => live.invoke(path, args)),
    fetch: (request) =>
      run("request", `${request.method} ${pathOf(request.url)}`, (live) => live.fetch(request)),
  };
}

/** `id` and `address` are null for an object that only its parent can reach. */
export function createObjectStub(
  id: ObjectId | null,
  address: ObjectAddress | null,
  calls: ObjectCalls,
): ObjectStub {
  const send = async (path: readonly string[], args: readonly unknown[] | null): Promise<unknown> => {
    const caller = currentWork();
    const copies = args === null ? null : transferArguments(args, caller ?? null);
    if (caller !== undefined) await caller.passGate();
    try {
      // From another process: there the stub itself has no `fetch`.
      const [request] = copies ?? [];
      if (path.length === 1 && path[0] === "fetch" && request instanceof Request)
        return await calls.fetch(request);
      return await calls.invoke(path, copies);
    } catch (error) {
      throw toRemoteError(error);
    }
  };
  const fetchObject = (input: Request | URL | string, init?: RequestInit): Promise<Response> => {
    const caller = currentWork();
    return fetchFollowing(input, init, async (request) => {
      if (caller !== undefined) await caller.passGate();
      try {
        return await calls.fetch(request);
      } catch (error) {
        throw toRemoteError(error);
      }
    });
  };
  const members = {
    ...(id === null ? {} : { id, name: id.name }),
    fetch: fetchObject,
    connect: () => {
      throw new Error("connect() is not available: objects on this server have no raw sockets");
    },
  };
  const target = address === null ? { send } : { send, address };
  return createStub(target, {
    members,
    isCallable: false,
    isService: true,
    tag: "DurableObject",
  }) as ObjectStub;
}

function pathOf(url: string): string {
  return URL.parse(url)?.pathname ?? url;
}
