/** Objects for callers that do what no caller should, and a program that does what no program should. */
import { DurableObject } from "cloudflare:workers";

let cancelled = 0;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export class Target extends DurableObject<Env> {
  async fetch(request: Request) {
    const { searchParams } = new URL(request.url);
    const [client, server] = Object.values(new WebSocketPair());
    this.ctx.acceptWebSocket(server, searchParams.getAll("tag"));
    return new Response(null, { status: 101, webSocket: client });
  }

  async webSocketMessage(ws: WebSocket, message: string | ArrayBuffer) {
    const text = String(message);
    if (text.startsWith("flood ")) {
      for (let i = 0; i < Number(text.slice(6)); i += 1) ws.send("x".repeat(4096));
      return;
    }
    const n = this.received();
    this.ctx.storage.kv.put("received", n + 1);
    // Handlers interleave at their awaits, but they begin in the order of the messages.
    if (text !== "slow last" && text !== `slow ${n}`) this.ctx.storage.kv.put("disorder", text);
    if (text.startsWith("slow ")) await pause(1);
    if (text.endsWith(" last")) ws.send("all");
  }

  webSocketClose(ws: WebSocket, code: number) {
    this.ctx.storage.kv.put("closed", [...this.closed(), code]);
  }

  /** True if the messages came in the order of their numbers. */
  order() {
    return this.ctx.storage.kv.get("disorder") === undefined;
  }

  received() {
    return (this.ctx.storage.kv.get("received") ?? 0) as number;
  }

  closed() {
    return (this.ctx.storage.kv.get("closed") ?? []) as number[];
  }

  open() {
    return this.ctx.getWebSockets().length;
  }

  /** Accepts a socket with these tags; the error's text if it is refused. */
  tag(tags: string[]) {
    try {
      this.ctx.acceptWebSocket(new WebSocketPair()[1], tags);
      return "accepted";
    } catch (error) {
      return (error as Error).message;
    }
  }

  attach(length: number) {
    const [, server] = Object.values(new WebSocketPair());
    try {
      server.serializeAttachment("x".repeat(length));
      return "attached";
    } catch (error) {
      return (error as Error).message;
    }
  }

  put(key: string, value: unknown) {
    return this.ctx.storage.put(key, value);
  }

  read(key: string) {
    return this.ctx.storage.get(key);
  }

  async abortInTransaction() {
    await this.ctx.storage.transaction(async (transaction) => {
      await transaction.put("transaction", "written");
      await pause(5);
      this.ctx.abort("in a transaction");
    });
  }

  abortInTransactionSync() {
    this.ctx.storage.transactionSync(() => {
      this.ctx.storage.kv.put("sync", "written");
      this.ctx.abort("in a synchronous transaction");
    });
  }

  abortAndGoOn() {
    this.ctx.storage.transactionSync(() => {
      this.ctx.storage.kv.put("on", "written");
      try {
        this.ctx.abort("in a transaction that goes on");
      } catch {
        // The program does not care.
      }
    });
    return "went on";
  }

  async storeFunction() {
    await this.ctx.storage.put("function", () => 1);
  }

  returnFunction() {
    return { call: () => "called", inner: { call: (n: number) => n + 1 } };
  }

  returnSymbol() {
    return Symbol("no copy");
  }

  returnCycle() {
    const cycle: Record<string, unknown> = { name: "cycle" };
    cycle.self = cycle;
    return cycle;
  }

  async armAndDelete(inMs: number) {
    await this.ctx.storage.setAlarm(Date.now() + inMs);
    await this.ctx.storage.deleteAll();
    return this.ctx.storage.getAlarm();
  }

  arm(inMs: number) {
    return this.ctx.storage.setAlarm(Date.now() + inMs);
  }

  alarm() {
    this.ctx.storage.kv.put("rang", true);
  }

  recurse(depth: number): Promise<number> {
    if (depth === 0) return Promise.resolve(0);
    return this.env.Target.getByName(`deep ${depth % 3}`)
      .recurse(depth - 1)
      .then((n: number) => n + 1);
  }
}

export default {
  async fetch(request: Request, env: Env) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/cancelled") return new Response(String(cancelled));
    if (pathname === "/plain") return new Response("no WebSocket here");
    if (pathname === "/framed") return framed(searchParams);
    if (pathname === "/passed") return fetch(searchParams.get("from") ?? "");
    if (pathname === "/rewritten") {
      const response = await fetch(searchParams.get("from") ?? "");
      return new Response((await response.text()).replace("NAME", "a longer name"), response);
    }
    if (pathname === "/never") return new Promise(() => undefined);
    if (pathname === "/endless") {
      const body = new ReadableStream({
        async pull(controller) {
          await pause(5);
          controller.enqueue(new TextEncoder().encode("more "));
        },
        cancel() {
          cancelled += 1;
        },
      });
      return new Response(body);
    }
    const [, name, method] = pathname.split("/");
    const target = env.Target.getByName(name);
    if (request.headers.get("upgrade") === "websocket") return target.fetch(request);
    if (method === "functions") {
      using returned = await target.returnFunction();
      return Response.json([await returned.call(), await returned.inner.call(1)]);
    }
    if (method === "cycle") {
      const cycle = await target.returnCycle();
      return Response.json([cycle.name, cycle.self === cycle]);
    }
    try {
      return Response.json({
        value: (await target[method](...JSON.parse(searchParams.get("args") ?? "[]"))) ?? null,
      });
    } catch (error) {
      return Response.json({ error: `${error.name}: ${error.message}` });
    }
  },
};

/** A response whose headers about its framing are wrong. */
function framed(query: URLSearchParams): Response {
  return new Response(query.get("body"), {
    headers: {
      "content-length": query.get("length") ?? "",
      "transfer-encoding": "gzip",
      connection: "content-type",
      trailer: "content-type",
    },
  });
}
