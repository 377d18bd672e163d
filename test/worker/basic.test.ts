/** A worker without objects in a real server: handlers, requests and responses, imports, files, variables, events. */
import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { RawSocket } from "../support/raw-socket.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { startWorker, type WorkerServer } from "./support/worker-server.ts";

const authorization = `Bearer ${ROOT_TOKEN}`;
let server: WorkerServer;
/** Answers compressed, with what it received. */
const upstream = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (text: string) => (body += text));
  request.on("end", () => {
    response.writeHead(200, { "content-encoding": "gzip" });
    response.end(gzipSync(`${request.method} ${request.headers.host} ${body}`));
  });
});
let upstreamHost: string;
beforeAll(async () => {
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  upstreamHost = `127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  server = await startWorker("basic/src/server.tsx", {
    env: { FROM_PROCESS: "process", OPENAI_API_KEY: "sk-1", UPSTREAM: `http://${upstreamHost}` },
    file: { agents: { maxBodyBytes: 1024 * 1024 } },
  });
});
afterAll(async () => {
  await server.remove();
  upstream.close();
});

const get = (path: string, init?: RequestInit) => fetch(server.url + path, init);
const json = async (path: string, init?: RequestInit): Promise<unknown> => (await get(path, init)).json();

test("imports work as bundlers understand them", async () => {
  expect(await json("/imports")).toEqual({
    alias: ["alias", "alias", "low"],
    index: "index",
    decorated: 42,
    sum: 5,
    answer: 42,
    greeting: "Hello, {{name}}!\n",
    page: "<b>raw</b>\n",
    jsx: '<p class="x">2</p>',
  });
});

test("the program sees the request as it was sent, without the dashboard's session", async () => {
  const answer = await json("/request?a=b", {
    method: "POST",
    headers: { "x-test": "1", cookie: "a=1; signalbox_session_1=x", "cf-connecting-ip": "6.6.6.6" },
    body: "hello",
  });
  expect(answer).toMatchObject({
    method: "POST",
    url: `${server.url}/request?a=b`,
    header: "1",
    cookie: "a=1",
    ip: "127.0.0.1",
    cf: "object",
    body: "hello",
  });
});

test("bodies stream in both directions, within the limit", async () => {
  expect(await json("/size", { method: "POST", body: Buffer.alloc(1_000_000) })).toEqual({ size: 1_000_000 });
  const tooLarge = await get("/size", { method: "POST", body: Buffer.alloc(1_100_000) });
  expect(tooLarge.status).toBe(413);
  const chunked = await sendChunked(1_100_000);
  expect(chunked).toBe(413);
  expect(await (await get("/stream")).text()).toBe("piece 1\npiece 2\npiece 3\n");
});

/** The status for a body without a declared length. */
async function sendChunked(bytes: number): Promise<number | undefined> {
  const request = httpRequest(`${server.url}/size`, { method: "POST" });
  request.on("error", () => undefined);
  for (let sent = 0; sent < bytes; sent += 10_000) request.write(Buffer.alloc(10_000));
  request.end();
  const [response] = (await once(request, "response")) as [{ statusCode?: number; resume(): void }];
  response.resume();
  return response.statusCode;
}

test("responses keep their headers and cookies, and cannot set the dashboard's session", async () => {
  const response = await get("/cookies");
  expect([response.status, response.headers.getSetCookie()]).toEqual([204, ["a=1", "b=2"]]);
  expect((await get("/")).headers.get("content-security-policy")).toBeNull();
});

test("work after the answer goes on, and its failure ends nothing", async () => {
  await get("/later");
  await expect.poll(() => json("/background")).toContain("done");
  await expect.poll(() => server.stderr()).toContain("a background failure");
});

test("variables come from the wrangler file and the process, without the server's secrets", async () => {
  expect(await json("/env")).toEqual({
    mode: "wrangler",
    nested: { list: [1, 2] },
    global: "wrangler",
    fromProcess: "process",
    hidden: [null, null, null],
    hasCache: true,
  });
});

test("a handler that throws is a 500 without its reason, which the log has", async () => {
  for (const path of ["/throw", "/nothing", "/missing-binding"]) {
    const response = await get(path);
    const body = await response.text();
    expect([path, response.status, JSON.parse(body)]).toMatchObject([
      path,
      500,
      { errors: [{ code: 3020 }] },
    ]);
    expect(body).not.toContain("secret");
  }
  await expect.poll(() => server.stderr()).toContain("a secret reason");
  await expect
    .poll(() => server.stderr())
    .toContain("binding CACHE (kv namespace) is not available on Signalbox");
});

test("static files answer before the worker, and after one that passes through", async () => {
  expect(await (await get("/")).text()).toContain("<h1>home</h1>");
  expect(await (await get("/assets")).text()).toContain("home");
  const missing = await get("/no/such/page");
  expect([missing.status, await missing.text()]).toEqual([404, "<h1>missing</h1>\n"]);
  expect((await get("/pass-through")).status).toBe(404);
});

test("entrypoints of the worker are services, with props", async () => {
  expect(await json("/inner")).toEqual(["wrangler a {}", 'wrangler b {"n":1}', "inner /path"]);
});

test("global names of the originals' runtime are there", async () => {
  expect(await json("/timing")).toEqual([true, false, null]);
});

test("a 101 response joins the client's WebSocket; other answers to an upgrade are HTTP", async () => {
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/socket`);
  const messages: string[] = [];
  socket.on("message", (data: Buffer, isBinary) =>
    messages.push(isBinary ? data.toString("hex") : data.toString()),
  );
  const [upgrade] = (await once(socket, "upgrade")) as [{ headers: Record<string, string> }];
  expect(upgrade.headers["x-from"]).toBe("worker");
  if (socket.readyState !== WebSocket.OPEN) await once(socket, "open");
  socket.send("one");
  socket.send(Buffer.from([1, 2]));
  await expect.poll(() => messages).toEqual(["hello", "echo one", "0102"]);
  socket.send("bye");
  const [code, reason] = (await once(socket, "close")) as [number, Buffer];
  expect([code, reason.toString()]).toEqual([4001, "as asked"]);
  const refused = new WebSocket(`${server.url.replace("http", "ws")}/throw`);
  refused.on("error", () => undefined);
  const [, response] = (await once(refused, "unexpected-response")) as [unknown, { statusCode: number }];
  expect(response.statusCode).toBe(500);
});

interface Events {
  readonly scheduled: readonly { readonly cron: string }[];
  readonly emails: readonly object[];
}

test("scheduled and email handlers run for the operator only", async () => {
  const scheduled = "/cdn-cgi/handler/scheduled?cron=*+*+*+*+*&time=1000";
  const readEvents = async () => (await json("/events")) as Events;
  const before = await readEvents();
  expect((await get(scheduled, { method: "POST" })).status).toBe(401);
  expect((await get(scheduled, { method: "POST", headers: { authorization } })).status).toBe(200);
  expect((await get("/cdn-cgi/handler/scheduled?cron=fail", { headers: { authorization } })).status).toBe(
    500,
  );
  const mail = "Subject: Hi\r\n there\r\nFrom: a@example.com\r\n\r\nBody";
  const send = (from: string) =>
    get(`/cdn-cgi/handler/email?from=${from}&to=b@example.com`, {
      method: "POST",
      body: mail,
      headers: { authorization },
    });
  expect((await send("a@example.com")).status).toBe(200);
  expect(await (await send("spam@example.com")).text()).toContain("no spam");
  expect((await get("/cdn-cgi/handler/email", { method: "POST", headers: { authorization } })).status).toBe(
    400,
  );
  const events = await readEvents();
  expect({
    emails: events.emails.slice(before.emails.length),
    // The program's own trigger may be due during the test.
    scheduled: events.scheduled.slice(before.scheduled.length).filter(({ cron }) => cron !== "*/5 * * * *"),
  }).toMatchObject({
    scheduled: [{ cron: "* * * * *", time: 1000 }, { cron: "fail" }],
    emails: [
      { from: "a@example.com", to: "b@example.com", subject: "Hi there", size: mail.length, raw: mail },
      {},
    ],
  });
});

test("requests and responses can be passed on to and from another server", async () => {
  for (const path of ["/proxy", "/proxy-copy"]) {
    const response = await get(path);
    expect([path, response.status, await response.text()]).toEqual([path, 200, `GET ${upstreamHost} `]);
  }
  const sent = await get("/proxy-body", { method: "POST", body: "x".repeat(100_000) });
  expect(await sent.text()).toBe(`PUT ${upstreamHost} ${"x".repeat(100_000)}`);
});

test("a client that disconnects ends the stream, and its signal tells the program", async () => {
  const controller = new AbortController();
  const response = await get("/endless", { signal: controller.signal });
  await response.body?.getReader().read();
  controller.abort();
  await expect.poll(() => json("/background")).toEqual(expect.arrayContaining(["aborted", "cancelled"]));
});

test("a body that the program does not read does not disturb the next request of the connection", async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (const size of [10, 50_000, 900_000, 10]) {
    const request = httpRequest(`${server.url}/unread`, { method: "POST", agent });
    request.end(Buffer.alloc(size));
    const [answer] = (await once(request, "response")) as [IncomingMessage];
    expect([size, answer.statusCode]).toEqual([size, 200]);
    await answer.resume().toArray();
  }
  agent.destroy();
});

test("escaped spellings of the server's paths do not reach the worker", async () => {
  for (const path of ["/%61ccounts", "/%64ashboard", "/%761/default/default/echo/models"]) {
    const response = await get(path);
    expect([path, await response.text()]).not.toEqual([path, "<h1>missing</h1>\n"]);
  }
});

test("a path that would be another one in the program's URL is refused", async () => {
  for (const path of [
    "/x/../request",
    "/./request",
    "/x/%2e%2E/request",
    "/.%2e/agents/webhook-agent/y",
    "/x/..",
    "/request/.",
    "/x\\..\\request",
    "/request#x",
  ]) {
    const raw = new RawSocket(server.url);
    raw.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
    await raw.closed();
    expect([path, raw.received.toString("latin1", 9, 12)]).toEqual([path, "400"]);
  }
  const { url } = (await json("/request", { method: "POST", body: "" })) as { url: string };
  expect(url).toBe(`${server.url}/request`);
});

test("the server's own paths stay its own", async () => {
  expect((await get("/healthz")).status).toBe(200);
  expect((await get("/accounts")).status).toBe(401);
  expect((await get("/webhooks/taken", { method: "POST" })).status).toBe(401);
  expect((await get("/v1/default/default/echo/models")).status).not.toBe(404);
});
