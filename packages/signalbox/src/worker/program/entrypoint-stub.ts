/** Services inside the worker: `env.<binding>` and `ctx.exports.<name>` of classes that extend `WorkerEntrypoint`, and of the default export. */
import { createStub, followPath } from "../../agents/index.ts";
import type { ExecutionContext } from "./execution-context.ts";

/** Makes the target of one call. `props` is what the stub was made with. */
export type OpenTarget = (props: unknown) => object;

/**
 * Members of the stub are methods of a fresh target. The stub can be called with `{ props }` for a stub whose targets have these props.
 */
export function createEntrypointStub(open: OpenTarget, props: unknown = {}): object {
  const stub = createStub(
    { send: (path, args) => followPath(open(props), path, args) },
    {
      fetch: (input: string | URL | Request, init?: RequestInit) =>
        followPath(open(props), ["fetch"], [new Request(input, init)]),
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
