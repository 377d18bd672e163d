/** Forms of programs that are allowed and not those of the examples. */
import { createServer } from "node:http";
import { handleAsNodeRequest, httpServerHandler } from "cloudflare:node";
import * as workers from "cloudflare:workers";
import { DurableObject, RpcTarget, WorkerEntrypoint } from "cloudflare:workers";
// Its files import each other without endings.
import { shout } from "bundled-only";

export * from "./rooms.js";

/** A class of the time before `DurableObject`. */
export class Old {
  constructor(state, env) {
    this.state = state;
    this.env = env;
  }

  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/alarm") await this.state.storage.setAlarm(Date.now());
    const count = ((await this.state.storage.get("count")) ?? 0) + 1;
    await this.state.storage.put("count", count);
    return Response.json({ count, rung: (await this.state.storage.get("rung")) ?? false });
  }

  async alarm() {
    await this.state.storage.put("rung", true);
  }

  method() {
    return "never";
  }
}

/** Names that are equal in lower case. */
export class Sub extends DurableObject {
  who() {
    return "Sub";
  }

  async arm() {
    await this.ctx.storage.setAlarm(Date.now());
  }

  async alarm() {
    await this.ctx.storage.put("rung", this.who());
  }

  rung() {
    return this.ctx.storage.get("rung");
  }
}
export class SUB extends Sub {
  who() {
    return "SUB";
  }
}

export class Child extends DurableObject {
  props() {
    return this.ctx.props;
  }
}

export class Parent extends DurableObject {
  child(name, props) {
    const { Child: exported } = this.ctx.exports;
    return this.ctx.facets.get(name, () => ({ class: exported({ props }) })).props();
  }

  async deleteAllKeepsAlarm() {
    await this.ctx.storage.setAlarm(Date.now() + 1e9);
    await this.ctx.storage.deleteAll();
    return (await this.ctx.storage.getAlarm()) !== null;
  }

  alarm() {}
}

/** An entrypoint that is an object. */
export const other = {
  fetch(request, env, ctx) {
    const { pathname } = new URL(request.url);
    if (pathname === "/moved") return new Response(null, { status: 302, headers: { location: "/here" } });
    return new Response(`other ${pathname} ${typeof env.OLD} ${typeof ctx.waitUntil}`);
  },
};

export class Named extends WorkerEntrypoint {
  target() {
    return new (class extends RpcTarget {})();
  }
}

const server = createServer((request, response) => {
  request.setEncoding("utf8");
  let body = "";
  request.on("data", (chunk) => (body += chunk));
  request.on("end", () =>
    response.writeHead(201, { "x-host": request.headers.host }).end(`${request.url} ${body}`),
  );
});
const nodeHandler = httpServerHandler(server);

const rejections = [];
addEventListener("unhandledrejection", (event) => rejections.push(String(event.reason)));

async function sha256(text) {
  const stream = new crypto.DigestStream("SHA-256");
  const writer = stream.getWriter();
  await writer.write(new TextEncoder().encode(text));
  await writer.close();
  return Buffer.from(await stream.digest).toString("hex");
}

/** A body of texts, read, and read from a copy. */
async function textChunks() {
  const open = () =>
    new Response(
      new ReadableStream({
        start(controller) {
          for (const chunk of ["ü", new Uint8Array([33]), "€"]) controller.enqueue(chunk);
          controller.close();
        },
      }),
    );
  const copied = open();
  return [
    await open().text(),
    (await open().arrayBuffer()).byteLength,
    await copied.clone().text(),
    await copied.text(),
  ];
}

async function events(text) {
  const source = EventSource.from(new Response(text).body);
  const found = [];
  await new Promise((resolve) => {
    source.onmessage = (event) => found.push(event.data);
    source.addEventListener("named", (event) => found.push(`named ${event.data} ${event.lastEventId}`));
    source.onerror = resolve;
  });
  source.close();
  return found;
}

const ROUTES = {
  "/define": async () => ({ build: BUILD, shouted: shout("text") }),
  "/names": async (request, env) => {
    const promise = env.Sub.getByName("a").who();
    const binding = await workers.withEnv({ FORMS_MODE: "other" }, async () => {
      await scheduler.wait(1);
      return workers.env.FORMS_MODE;
    });
    const exported = workers.withEnvAndExports({}, { mine: 1 }, () => workers.exports.mine);
    return {
      instances: [
        promise instanceof workers.RpcPromise,
        env.Sub.getByName("a").who instanceof workers.RpcProperty,
        env.Sub.getByName("a") instanceof workers.ServiceStub,
        {} instanceof workers.RpcPromise,
      ],
      binding,
      exported,
      after: workers.env.FORMS_MODE ?? null,
      span: workers.tracing.enterSpan("work", (span, value) => [span.isTraced, value], 1),
      purged: await workers.cache.purge({ purgeEverything: true }),
      restore: typeof workers.restore,
      self: self === globalThis,
      flags: Cloudflare.compatibilityFlags,
      digest: await sha256("abc"),
      texts: await textChunks(),
      rewritten: await new HTMLRewriter()
        .on("p", { element: (element) => element.setInnerContent("new") })
        .transform(new Response("<p>old</p>"))
        .text(),
      cf: new Request(new Request("https://example.com/", { cf: { colo: "X" } })).cf,
      events: await events("data: one\n\nevent: named\nid: 7\ndata: two\ndata: three\n\n: comment\n\n"),
    };
  },
  "/report": async () => {
    const reported = [];
    const listener = (event) => {
      reported.push(event.error.message);
      event.preventDefault();
    };
    addEventListener("error", listener);
    reportError(new Error("handled here"));
    removeEventListener("error", listener);
    reportError(new Error("logged"));
    return reported;
  },
  "/rejection": async () => {
    void Promise.reject(new Error("nobody waits"));
    while (rejections.length === 0) await scheduler.wait(1);
    return rejections;
  },
  "/old": async (request, env) => {
    const stub = env.OLD.get(env.OLD.idFromName("a"));
    const first = await (await stub.fetch("https://example.com/alarm")).json();
    const call = await stub.method().catch((error) => `${error.name}: ${error.message}`);
    let second = await (await stub.fetch("https://example.com/")).json();
    while (!second.rung) {
      await scheduler.wait(5);
      second = await (await stub.fetch("https://example.com/")).json();
    }
    return { first, call, rung: second.rung };
  },
  "/subs": async (request, env) => {
    const stubs = [env.Sub.getByName("a"), env.SUB.getByName("a")];
    for (const stub of stubs) await stub.arm();
    const rung = [];
    for (const stub of stubs) {
      while ((await stub.rung()) === undefined) await scheduler.wait(5);
      rung.push(await stub.rung());
    }
    return { who: await Promise.all(stubs.map((stub) => stub.who())), rung };
  },
  "/facets": async (request, env) => {
    const parent = env.Parent.getByName("a");
    return [await parent.child("one", { n: 1 }), await parent.child("two", { n: 2 })];
  },
  "/service": async (request, env, ctx) => {
    const followed = await env.OTHER.fetch("https://example.com/moved");
    const manual = await env.OTHER.fetch("https://example.com/moved", { redirect: "manual" });
    return [
      followed.url,
      await followed.text(),
      manual.status,
      await (await ctx.exports.other.fetch("https://example.com/x")).text(),
    ];
  },
  "/alarm": (request, env) => env.Parent.getByName("b").deleteAllKeepsAlarm(),
  "/binary": async () => {
    const { 0: one, 1: two } = new WebSocketPair();
    one.accept();
    two.accept();
    const kinds = [];
    two.addEventListener("message", (event) => kinds.push(event.data.constructor.name));
    one.send(new Uint8Array([1]));
    await scheduler.wait(1);
    two.binaryType = two.binaryType === "blob" ? "arraybuffer" : "blob";
    one.send(new Uint8Array([1]));
    while (kinds.length < 2) await scheduler.wait(1);
    return kinds;
  },
  "/rooms": async (request, env) => {
    const rooms = env.Room ?? env.ChatRoom;
    return rooms.getByName("lobby").enter(new URL(request.url).searchParams.get("who"));
  },
};

export default {
  async fetch(request, env, ctx) {
    const { pathname } = new URL(request.url);
    if (pathname === "/node") return nodeHandler.fetch(request);
    if (pathname === "/node-again") return handleAsNodeRequest(server, request);
    const route = ROUTES[pathname];
    return route === undefined
      ? new Response("not found", { status: 404 })
      : Response.json(await route(request, env, ctx));
  },
};
