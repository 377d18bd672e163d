/** Loads programs: the body of a request is the code of one, and what is asked of it. */
import { DurableObject, RpcTarget, WorkerEntrypoint } from "cloudflare:workers";

interface Question {
  /** Default: a new one for each request. */
  readonly id?: string;
  readonly modules: Record<string, unknown>;
  readonly main?: string;
  readonly outbound?: "none" | "service" | "inherited";
  readonly env?: Record<string, unknown>;
  readonly limits?: object;
  readonly entrypoint?: string;
  readonly props?: unknown;
  readonly method?: string;
  readonly args?: unknown[];
  readonly tails?: boolean;
  readonly code?: object;
  /** Whoever asks may give up. */
  readonly abortable?: boolean;
}

interface Env {
  readonly LOADER: {
    get(id: string | null, code: () => unknown): Loaded;
    load(code: unknown): Loaded;
  };
  readonly Store: DurableObjectNamespace;
}

interface DurableObjectNamespace {
  getByName(name: string): Record<string, (...args: unknown[]) => Promise<unknown>> & {
    fetch(request: Request): Promise<Response>;
  };
}

interface Loaded {
  getEntrypoint(
    name?: string,
    options?: object,
  ): Record<string, (...args: unknown[]) => Promise<unknown>> & {
    fetch(request: Request | string, init?: RequestInit): Promise<Response>;
  };
  getDurableObjectClass(name?: string): unknown;
}

interface Context {
  readonly exports: Record<string, (options: object) => unknown>;
}

const traces: unknown[] = [];

/** Where requests of programs go that have no network of their own. */
export class Outbound extends WorkerEntrypoint<Env, { readonly name: string }> {
  async fetch(request: Request): Promise<Response> {
    const { props } = this.ctx as { props: { name: string } };
    return Response.json({
      via: props.name,
      url: request.url,
      method: request.method,
      body: await request.text(),
    });
  }
}

export class Tail extends WorkerEntrypoint<Env> {
  tail(events: unknown[]): void {
    traces.push(...events);
  }
}

export class Tools extends WorkerEntrypoint<Env> {
  add(a: number, b: number): number {
    return a + b;
  }

  async apply(work: (value: number) => Promise<number>, value: number): Promise<number> {
    return work(value);
  }

  counter(): Counter {
    return new Counter();
  }

  fail(): never {
    throw Object.assign(new RangeError("too far"), { code: 42 });
  }
}

class Counter extends RpcTarget {
  #count = 0;
  next(): number {
    return ++this.#count;
  }
}

export class Store extends DurableObject<Env> {
  async asks(id: string): Promise<unknown> {
    await (this.ctx as { storage: { put(key: string, value: unknown): Promise<void> } }).storage.put(
      "asked",
      id,
    );
    const worker = this.env.LOADER.get(id, () =>
      simple(`export default {
      fetch: () => new Response("for an object") };`),
    );
    return (await worker.getEntrypoint().fetch("http://program/")).text();
  }

  value(): string {
    return "of an object";
  }

  async facet(name: string, source: string, method: string, ...args: unknown[]): Promise<unknown> {
    const { facets } = this.ctx as {
      facets: {
        get(name: string, start: () => unknown): Record<string, (...args: unknown[]) => Promise<unknown>>;
      };
    };
    const worker = this.env.LOADER.get(`facet-${source.length}`, () => simple(source));
    const facet = facets.get(name, () => ({ class: worker.getDurableObjectClass("App"), id: name }));
    return facet[method]?.(...args);
  }
}

function simple(source: string): object {
  return {
    compatibilityDate: "2026-10-01",
    mainModule: "main.js",
    modules: { "main.js": source },
    env: {},
    globalOutbound: null,
  };
}

async function ask(question: Question, env: Env, ctx: Context, signal: AbortSignal): Promise<unknown> {
  const { id, modules, main = "main.js", outbound = "none", props, method, args = [], limits } = question;
  const exported = (name: string, given: object = {}) => ctx.exports[name]?.({ props: given });
  const worker = env.LOADER.get(id ?? null, () => ({
    compatibilityDate: "2026-10-01",
    mainModule: main,
    modules: Object.fromEntries(Object.entries(modules).map(([name, module]) => [name, decode(module)])),
    env: { ...question.env, TOOLS: exported("Tools"), STORE: env.Store.getByName("shared") },
    ...(limits === undefined ? {} : { limits }),
    ...(question.tails === true ? { tails: [exported("Tail")] } : {}),
    ...(outbound === "inherited"
      ? {}
      : { globalOutbound: outbound === "none" ? null : exported("Outbound", { name: "outbound" }) }),
    ...question.code,
  }));
  const entrypoint = worker.getEntrypoint(question.entrypoint, { props });
  if (method !== undefined) return entrypoint[method]?.(...args);
  const response = await entrypoint.fetch(
    new Request("http://program/path", {
      method: "POST",
      body: "a body",
      ...(question.abortable === true ? { signal } : {}),
    }),
  );
  return { status: response.status, text: await response.text() };
}

/** Bytes come as `{ data: [1, 2] }`. */
function decode(module: unknown): unknown {
  const { data } = module as { data?: number[] };
  return data === undefined ? module : { data: new Uint8Array(data).buffer };
}

export default {
  async fetch(request: Request, env: Env, ctx: Context): Promise<Response> {
    const { pathname } = new URL(request.url);
    try {
      if (pathname === "/traces") return Response.json(traces);
      if (pathname === "/object")
        return Response.json({ value: await env.Store.getByName("asking").asks?.("object") });
      if (pathname === "/facet") {
        const [name, source, method, ...args] = (await request.json()) as [
          string,
          string,
          string,
          ...unknown[],
        ];
        return Response.json({
          value: (await env.Store.getByName("parent").facet?.(name, source, method, ...args)) ?? null,
        });
      }
      return Response.json({
        value: (await ask((await request.json()) as Question, env, ctx, request.signal)) ?? null,
      });
    } catch (error) {
      const { name, message, code } = error as Error & { code?: unknown };
      return Response.json({ error: `${name}: ${message}`, code });
    }
  },
};
