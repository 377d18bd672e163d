/** Services inside the worker: `env.<binding>` and `ctx.exports.<name>` of classes that extend `WorkerEntrypoint`, and of the default export. */
import { createStub, reach, transfer, transferResult } from "../../agents/index.ts";
import type { ExecutionContext } from "./execution-context.ts";

/** Makes the target of one call. `props` is what the stub was made with. */
export type OpenTarget = (props: unknown) => object;

/**
 * Members of the stub are methods of a fresh target. The stub can be called with `{ props }` for a stub whose targets have these props.
 */
export function createEntrypointStub(open: OpenTarget, props: unknown = {}): object {
  const call = async (path: readonly string[], args: readonly unknown[] | null) => {
    const copies = args?.map((argument) => transfer(argument, null)) ?? null;
    return transferResult(await reach(open(props), path, copies), null);
  };
  const stub = createStub(
    { send: call },
    {
      members: {
        fetch: (input: string | URL | Request, init?: RequestInit) =>
          call(["fetch"], [new Request(input, init)]),
      },
    },
  );
  return new Proxy(stub, {
    apply: (_target, _this, [options]: [{ readonly props?: unknown }?]) =>
      createEntrypointStub(open, options?.props ?? {}),
  });
}

/** The default export as an object with handlers: only `fetch` can be called through a stub. */
export function handlerTarget(
  run: (request: Request, ctx: ExecutionContext) => Promise<unknown>,
  ctx: ExecutionContext,
): object {
  return { fetch: (request: Request) => run(request, ctx) };
}
