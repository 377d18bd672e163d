/** Services of the workers of this server: `env.<binding>` and `ctx.exports.<name>` of classes that extend `WorkerEntrypoint`, of objects with handlers, and of the default export. */
import {
  createStub,
  endingWith,
  fetchFollowing,
  reach,
  transferArguments,
  transferResult,
} from "../../agents/index.ts";
import type { ExecutionContext } from "./execution-context.ts";

/** Makes the target of one call. `props` is what the stub was made with. */
export type OpenTarget = (props: unknown) => object;

/**
 * Members of the stub are methods of a fresh target. The stub can be called with `{ props }` for a stub whose targets have these props.
 */
export function createEntrypointStub(open: OpenTarget, props: unknown = {}): object {
  const call = async (path: readonly string[], args: readonly unknown[] | null) => {
    const copies = args === null ? null : transferArguments(args, null);
    return endingWith(copies, async () => transferResult(await reach(open(props), path, copies), null));
  };
  return createStub(
    { send: call },
    {
      isService: true,
      call: (options) =>
        createEntrypointStub(open, (options as { readonly props?: unknown } | undefined)?.props ?? {}),
      members: {
        fetch: (input: string | URL | Request, init?: RequestInit) =>
          fetchFollowing(input, init, async (request) => (await call(["fetch"], [request])) as Response),
      },
    },
  );
}

/** The target of an entrypoint that is an object with handlers: only `fetch` can be called through a stub. */
export function handlerTarget(
  handlers: Readonly<Record<string, unknown>>,
  env: Readonly<Record<string, unknown>>,
  ctx: ExecutionContext,
): object {
  return {
    fetch(request: Request): unknown {
      if (typeof handlers["fetch"] !== "function")
        throw new TypeError("Handler does not export a fetch() function.");
      return handlers["fetch"](request, env, ctx);
    },
  };
}
