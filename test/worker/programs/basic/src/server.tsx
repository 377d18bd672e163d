import { env as globalEnv, WorkerEntrypoint } from "cloudflare:workers";
import { fromAlias, Level } from "@/names";
import add from "./add.wasm";
import data from "./data.json";
import greeting from "./greeting.tmpl";
import { fromIndex } from "./lib";
import { decorated } from "./lib/decorated.js";
import { fromAlias as byJsEnding } from "./lib/names.js";
import page from "./page.html";

const background: string[] = [];
const scheduled: object[] = [];
const emails: object[] = [];

export class Inner extends WorkerEntrypoint {
  greet(name: string) {
    return `${this.env.SETTING} ${name} ${JSON.stringify(this.ctx.props)}`;
  }

  async fetch(request: Request) {
    return new Response(`inner ${new URL(request.url).pathname}`);
  }
}

type Handler = (request: Request, env: Env, ctx: ExecutionContext) => unknown;

const routes: Record<string, Handler> = {
  "/imports": () => ({
    alias: [fromAlias, byJsEnding, Level.Low],
    index: fromIndex,
    decorated,
    sum: new WebAssembly.Instance(add).exports.add(2, 3),
    answer: data.answer,
    greeting,
    page,
    jsx: (<p class="x">{1 + 1}</p>).toString(),
  }),
  "/request": async (request) => ({
    method: request.method,
    url: request.url,
    header: request.headers.get("x-test"),
    cookie: request.headers.get("cookie"),
    ip: request.headers.get("cf-connecting-ip"),
    cf: typeof request.cf,
    body: await request.text(),
  }),
  "/size": async (request) => {
    let size = 0;
    for await (const chunk of request.body) size += chunk.length;
    return { size };
  },
  "/stream": () => {
    let count = 0;
    const body = new ReadableStream({
      async pull(controller) {
        count += 1;
        controller.enqueue(new TextEncoder().encode(`piece ${count}\n`));
        if (count === 3) controller.close();
        await scheduler.wait(1);
      },
    });
    return new Response(body, { headers: { "content-type": "text/plain" } });
  },
  "/endless": (request) => {
    request.signal.addEventListener("abort", () => background.push("aborted"));
    const body = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(100_000)),
      cancel: () => void background.push("cancelled"),
    });
    return new Response(body);
  },
  "/proxy": (request, env) => fetch(new Request(`${env.UPSTREAM}/plain`, request)),
  "/proxy-copy": async (_request, env) => {
    const response = await fetch(`${env.UPSTREAM}/copy`);
    return new Response(response.body, response);
  },
  "/proxy-body": (request, env) =>
    fetch(
      new Request(`${env.UPSTREAM}/body`, { method: "PUT", body: request.body, headers: request.headers }),
    ),
  "/unread": () => new Response("without reading the body"),
  "/cookies": () => {
    const headers = new Headers();
    headers.append("set-cookie", "a=1");
    headers.append("set-cookie", "b=2");
    headers.append("set-cookie", "signalbox_session_1=stolen");
    return new Response(null, { status: 204, headers });
  },
  "/later": (_request, _env, ctx) => {
    ctx.waitUntil(scheduler.wait(5).then(() => background.push("done")));
    ctx.waitUntil(Promise.reject(new Error("a background failure")));
    return { now: background.length };
  },
  "/background": () => background,
  "/env": (_request, env) => ({
    mode: env.SETTING,
    nested: env.NESTED,
    global: globalEnv.SETTING,
    fromProcess: env.FROM_PROCESS,
    hidden: [env.SIGNALBOX_ROOT_TOKEN ?? null, env.DATABASE_URL ?? null, env.OPENAI_API_KEY ?? null],
    hasCache: env.CACHE !== undefined,
  }),
  "/missing-binding": (_request, env) => env.CACHE.get("x"),
  "/throw": () => {
    throw new Error("a secret reason");
  },
  "/nothing": () => undefined,
  "/pass-through": (_request, _env, ctx) => {
    ctx.passThroughOnException();
    throw new Error("falls through");
  },
  "/assets": async (_request, env) => (await env.ASSETS.fetch("http://x/")).text(),
  "/inner": async (_request, env, ctx) => [
    await env.INNER.greet("a"),
    await ctx.exports.Inner({ props: { n: 1 } }).greet("b"),
    await (await env.INNER.fetch("http://x/path")).text(),
  ],
  "/timing": async () => [
    crypto.subtle.timingSafeEqual(new Uint8Array([1]), new Uint8Array([1])),
    crypto.subtle.timingSafeEqual(new Uint8Array([1]), new Uint8Array([2])),
    (await caches.default.match("http://x/")) ?? null,
  ],
  "/events": () => ({ scheduled, emails }),
  "/socket": (request) => {
    if (request.headers.get("upgrade") !== "websocket") return new Response("upgrade", { status: 426 });
    const [client, server] = Object.values(new WebSocketPair());
    server.accept();
    server.addEventListener("message", (event: MessageEvent) => {
      if (event.data === "bye") server.close(4001, "as asked");
      else server.send(typeof event.data === "string" ? `echo ${event.data}` : event.data);
    });
    server.send("hello");
    return new Response(null, { status: 101, webSocket: client, headers: { "x-from": "worker" } });
  },
  "/webhooks/taken": () => ({ taken: true }),
};

export default {
  async fetch(request, env, ctx) {
    const handler = routes[new URL(request.url).pathname];
    if (handler === undefined) return env.ASSETS.fetch(request);
    const answer = await handler(request, env, ctx);
    return answer === undefined || answer instanceof Response ? answer : Response.json(answer);
  },
  async scheduled(controller) {
    scheduled.push({ cron: controller.cron, time: controller.scheduledTime });
    if (controller.cron === "fail") throw new Error("scheduled failed");
  },
  async email(message) {
    emails.push({
      from: message.from,
      to: message.to,
      subject: message.headers.get("subject"),
      size: message.rawSize,
      raw: await new Response(message.raw).text(),
    });
    if (message.from.startsWith("spam")) message.setReject("no spam");
  },
} satisfies ExportedHandler<Env>;
