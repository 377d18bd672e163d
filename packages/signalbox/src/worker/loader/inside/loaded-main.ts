/**
 * The main file of the process of a loaded program. It is bundled into one text (`bundle-inside.ts`) and runs without files: it receives the program through its socket, closes what
 * the program must not have, and then loads it.
 */
import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import {
  bindWorker,
  createStub,
  EmailMessage,
  endingWith,
  exportKind,
  installWorkerGlobals,
  reach,
  serveProcessSession,
  transferArguments,
  transferResult,
  workersModule,
} from "../../../agents/calls.ts";
import { confineProcess, openParentSocket } from "../../../engines/program-process/index.ts";
import { NonRetryableError } from "../../modules/workflows-module.ts";
import { addFetchGlobals } from "../../program/fetch-globals.ts";
import { addRuntimeGlobals } from "../../program/runtime-globals.ts";
import type { CodeModule } from "../program-code.ts";
import { FacetContext, type FacetContextParts } from "./facet-context.ts";
import {
  countRequest,
  installConsole,
  logError,
  type InvocationTrace,
  recordException,
  startTrace,
  within,
} from "./invocation-log.ts";
import { createLoader } from "./program-modules.ts";

type Values = Readonly<Record<string, unknown>>;
type Constructor = new (ctx: object, env: object) => Record<string, unknown>;

/** The first value of the session. */
export interface LoadedStart {
  readonly mainModule: string;
  readonly modules: readonly (readonly [name: string, module: CodeModule])[];
  readonly env: Values;
  readonly flags: Readonly<Record<string, boolean>>;
  readonly host: LoadedHost;
  /** Every call is reported, not only those that write something. */
  readonly hasTails: boolean;
  /** Of one call; null: no limit. */
  readonly subRequests: number | null;
}

/** What the server does for the process. */
export interface LoadedHost {
  /** A request of the program to the network. */
  fetch(request: Request): Promise<Response>;
  /** A call has ended, and what it wrote. */
  trace(trace: Omit<InvocationTrace, "requests">): Promise<void>;
  /** Work that was passed to `waitUntil` runs, or no more. */
  waiting(isWaiting: boolean): Promise<void>;
  /** An object of the program ends itself. */
  abort(facet: number, reason: string): Promise<void>;
}

type Open = (name: string | null, props: unknown) => object;
type Construct = (
  facet: number,
  name: string | null,
  id: FacetContextParts["id"],
  props: unknown,
) => { readonly context: FacetContext; readonly object: Record<string, unknown> };

function NoWebSocket(): never {
  throw new Error("new WebSocket(url) is not available to loaded programs");
}

async function load(start: LoadedStart): Promise<unknown> {
  const { env, flags, host, mainModule, modules, subRequests } = start;
  const waiting = createWaiting(host);
  const exports: Record<string, unknown> = {};
  const { env: _env, exports: _exports, ...workers } = workersModule;
  const importMain = createLoader({
    main: mainModule,
    modules,
    platform: {
      "cloudflare:workers": { ...workers, env: workersModule.env, exports: workersModule.exports },
      "cloudflare:email": { EmailMessage },
      "cloudflare:workflows": { NonRetryableError },
      "node:async_hooks": { AsyncLocalStorage, AsyncResource },
      "node:process": {
        env: {},
        nextTick: process.nextTick,
        platform: process.platform,
        version: process.version,
      },
    },
  });
  installConsole();
  // An error in a timer of the program ends none of its calls.
  process.on("uncaughtException", logError);
  Object.assign(globalThis, {
    WebSocket: NoWebSocket,
    fetch: async (input: string | URL | Request, init?: RequestInit) => {
      countRequest(subRequests);
      return host.fetch(new Request(input, init));
    },
  });
  installWorkerGlobals();
  addRuntimeGlobals(flags);
  addFetchGlobals();
  confineProcess();
  bindWorker({ env, exports, flags, waitUntil: waiting });
  const { default: main, ...named } = await importMain();
  const contextOf = (props: unknown) => ({
    waitUntil: waiting,
    passThroughOnException: () => undefined,
    props,
    exports,
  });
  const open = (name: string | null, props: unknown): object => {
    const found = name === null ? main : named[name];
    if (exportKind(found) === "entrypoint") return new (found as Constructor)(contextOf(props), env);
    if (typeof found === "object" && found !== null)
      return handlersOf(found as Values, env, contextOf(props));
    throw new TypeError(`The loaded program has no entrypoint "${name ?? "default"}".`);
  };
  for (const [name, value] of [...Object.entries(named), ["default", main] as const])
    if (exportKind(value) === "entrypoint" || (typeof value === "object" && value !== null))
      exports[name] = loopback((props) => open(name === "default" ? null : name, props));
  const construct = (facet: number, name: string | null, id: FacetContextParts["id"], props: unknown) => {
    const found = name === null ? main : named[name];
    if (typeof found !== "function")
      throw new TypeError(`The loaded program has no class "${name ?? "default"}".`);
    // A server that is gone ends this process.
    const abort = (reason: string) => void host.abort(facet, reason).catch(() => undefined);
    const context = new FacetContext({ facet, id, props, exports, waitUntil: waiting, abort });
    return { context, object: new (found as Constructor)(context, env) };
  };
  return transferResult(new LoadedRoot(open, construct, start), null);
}

/** What the server calls: entrypoints by their names. */
class LoadedRoot extends workersModule.RpcTarget {
  readonly #open: Open;
  readonly #construct: Construct;
  readonly #start: LoadedStart;
  readonly #objects = new Map<number, ReturnType<Construct>>();

  constructor(open: Open, construct: Construct, start: LoadedStart) {
    super();
    this.#open = open;
    this.#construct = construct;
    this.#start = start;
  }

  run(
    name: string | null,
    props: unknown,
    path: readonly string[],
    args: readonly unknown[] | null,
  ): Promise<unknown> {
    return this.#traced(() => reach(this.#open(name, props), path, args));
  }

  construct(
    facet: number,
    ...spec: Parameters<Construct> extends [number, ...infer Rest] ? Rest : never
  ): Promise<void> {
    return this.#traced(async () => {
      this.#objects.set(facet, this.#construct(facet, ...spec));
    });
  }

  invoke(facet: number, path: readonly string[], args: readonly unknown[] | null): Promise<unknown> {
    return this.#traced(async () => {
      const found = this.#objects.get(facet);
      if (found === undefined) throw new Error("The object is gone.");
      await found.context.ready;
      const [request] = args ?? [];
      const { object } = found;
      if (path.length === 1 && path[0] === "fetch" && request instanceof Request) {
        if (typeof object["fetch"] !== "function")
          throw new Error("Handler does not export a fetch() function.");
        return object["fetch"](request) as unknown;
      }
      return reach(object, path, args);
    });
  }

  forget(facet: number): void {
    this.#objects.delete(facet);
  }

  async #traced<T>(work: () => Promise<T>): Promise<T> {
    const trace = startTrace();
    try {
      return await within(trace, work);
    } catch (error) {
      recordException(trace, error);
      throw error;
    } finally {
      const { hasTails, host } = this.#start;
      const { requests: _requests, ...report } = trace;
      // A server that is gone does not need it.
      if (hasTails || trace.logs.length > 0) host.trace(report).catch(() => undefined);
    }
  }
}

function handlersOf(handlers: Values, env: object, ctx: object): object {
  return {
    fetch(request: Request): unknown {
      if (typeof handlers["fetch"] !== "function")
        throw new TypeError("Handler does not export a fetch() function.");
      return handlers["fetch"](request, env, ctx);
    },
  };
}

/** `ctx.exports.<name>` inside of the program. */
function loopback(open: (props: unknown) => object, props: unknown = {}): object {
  const send = async (path: readonly string[], args: readonly unknown[] | null) => {
    const copies = args === null ? null : transferArguments(args, null);
    return endingWith(copies, async () => transferResult(await reach(open(props), path, copies), null));
  };
  const fetch = (input: string | URL | Request, init?: RequestInit) =>
    send(["fetch"], [new Request(input, init)]);
  return createStub(
    { send },
    {
      isService: true,
      members: { fetch },
      call: (options) => loopback(open, (options as { readonly props?: unknown } | undefined)?.props ?? {}),
    },
  );
}

function createWaiting(host: LoadedHost): (work: unknown) => void {
  let count = 0;
  const change = (by: number) => {
    const before = count > 0;
    count += by;
    // A server that is gone ends this process.
    if (before !== count > 0) host.waiting(count > 0).catch(() => undefined);
  };
  return (work) => {
    change(1);
    Promise.resolve(work).then(
      () => change(-1),
      () => change(-1),
    );
  };
}

serveProcessSession(openParentSocket(), (first) => load(first as LoadedStart));
