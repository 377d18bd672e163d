/** Events of objects and frames of WebSockets: each is a task of its own, and the microtasks of one have run before the next begins. */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SignalboxError } from "@signalbox/protocol";
import { afterEach, beforeEach, expect, it } from "vitest";
import { waitUntil } from "../../../../../test/support/wait-until.ts";
import type { ObjectContext } from "./object-context.ts";
import { openHost, type TestHost } from "./object-host-fixture.ts";
import { WebSocketPair, type WorkerWebSocket } from "./web-socket.ts";
import { DurableObject } from "./workers-module.ts";

class Turns extends DurableObject {
  declare readonly ctx: ObjectContext;
  readonly log: string[] = [];

  async microtasks(): Promise<string> {
    this.log.push("start");
    for (let i = 0; i < 20; i += 1) await Promise.resolve();
    this.log.push("end");
    return this.log.join(" ");
  }

  async other(): Promise<number> {
    return this.log.length;
  }

  fetch(request: Request): Response {
    const { pathname } = new URL(request.url);
    if (pathname === "/redirect") return redirect("/landed?q=1", 302);
    if (pathname === "/see-other") return redirect("https://example.com/landed", 303);
    if (pathname === "/again") return redirect("/landed", 307);
    if (pathname === "/loop") return redirect("/loop", 302);
    if (pathname === "/who") return new Response(request.headers.get("authorization"));
    if (pathname === "/elsewhere") return redirect("https://other.example.com/who", 302);
    if (pathname === "/here") return redirect("/who", 302);
    if (pathname === "/landed") return new Response(`${request.method} ${request.url}`);
    const { 0: client, 1: server } = new WebSocketPair();
    if (pathname === "/hibernating") this.ctx.acceptWebSocket(server);
    else {
      server.accept();
      void this.#readThree(server);
    }
    return new Response(null, { status: 101, webSocket: client } as ResponseInit);
  }

  async #readThree(socket: WorkerWebSocket): Promise<void> {
    for (let i = 0; i < 3; i += 1) {
      const [event] = (await once(socket, "message")) as [MessageEvent];
      this.log.push(String(event.data));
    }
  }

  async webSocketMessage(_socket: WorkerWebSocket, message: string): Promise<void> {
    this.log.push(`start ${message}`);
    await Promise.resolve();
    await Promise.resolve();
    this.log.push(`end ${message}`);
  }

  async tell(message: string): Promise<void> {
    this.ctx.storage.kv.put("message", message);
    for (const socket of this.ctx.getWebSockets()) socket.send(message);
  }

  read(): string[] {
    return this.log;
  }
}

/** What `Lifecycle` of the published package does: the handlers are properties of the object. */
class Installed extends DurableObject {
  declare readonly ctx: ObjectContext;
  alarms = 0;
  alarm: (() => void) | undefined;

  constructor(ctx: ObjectContext, env: unknown) {
    super(ctx, env);
    this.alarm = () => {
      this.alarms += 1;
    };
  }

  async arm(): Promise<void> {
    await this.ctx.storage.setAlarm(Date.now());
  }

  async count(): Promise<number> {
    return this.alarms;
  }
}

function redirect(location: string, status: number): Response {
  return new Response(null, { status, headers: { location } });
}

let isStorageFailing: boolean;
let folder: string;
let test: TestHost;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-events-"));
  isStorageFailing = false;
  test = await openHost(
    folder,
    { Turns, Installed },
    {
      beforeSync: async () => {
        if (isStorageFailing) throw new SignalboxError("storage_unavailable");
      },
    },
  );
});
afterEach(async () => {
  await test.close();
  await rm(folder, { recursive: true, force: true });
});

const turns = () => test.env["Turns"]?.getByName("a") as unknown as Turns & { fetch: typeof fetch };
type Upgrade = Response & { readonly webSocket: WorkerWebSocket };

it("runs the microtasks of an event before the next event begins", async () => {
  const stub = turns();
  await stub.other();
  const [, , last] = await Promise.all([stub.microtasks(), stub.microtasks(), stub.microtasks()]);
  expect(last).toBe("start end start end start end");
});

it("a WebSocket ends when the storage of its object fails: what the object sent before may be stored, and has not left", async () => {
  const stub = turns();
  const { webSocket } = (await stub.fetch("https://object/hibernating")) as Upgrade;
  const seen: unknown[] = [];
  webSocket.addEventListener("message", (event) => seen.push((event as MessageEvent).data));
  webSocket.addEventListener("close", (event) => seen.push((event as CloseEvent).code));
  webSocket.accept();
  await stub.tell("one");
  await waitUntil(
    () => seen,
    (found) => found.length === 1,
  );
  isStorageFailing = true;
  await expect(stub.tell("two")).rejects.toThrow();
  isStorageFailing = false;
  expect(
    await waitUntil(
      () => seen,
      (found) => found.length > 1,
    ),
  ).toEqual(["one", 1006]);
  await stub.tell("three");
});

it("runs the microtasks of a message before the next message of a hibernating WebSocket", async () => {
  const { webSocket } = (await turns().fetch("https://example.com/hibernating")) as Upgrade;
  webSocket.accept();
  for (const text of ["a", "b", "c"]) webSocket.send(text);
  const log = await waitUntil(
    () => turns().read(),
    (read) => read.length === 6,
  );
  expect(log).toEqual(["start a", "end a", "start b", "end b", "start c", "end c"]);
});

it("loses no frame for an object that waits for one message after the other", async () => {
  const { webSocket } = (await turns().fetch("https://example.com/plain")) as Upgrade;
  webSocket.accept();
  for (const text of ["a", "b", "c"]) webSocket.send(text);
  expect(
    await waitUntil(
      () => turns().read(),
      (read) => read.length === 3,
    ),
  ).toEqual(["a", "b", "c"]);
});

it("loses no frame for code outside of objects that waits for one message after the other", async () => {
  const { 0: client, 1: server } = new WebSocketPair();
  server.accept();
  for (const text of ["a", "b"]) server.send(text);
  client.accept();
  const next = async () => String(((await once(client, "message")) as [MessageEvent])[0].data);
  const early = [await next(), await next()];
  for (const text of ["c", "d"]) server.send(text);
  expect([...early, await next(), await next()]).toEqual(["a", "b", "c", "d"]);
  const closed = once(client, "close");
  client.addEventListener("close", () => client.close(4001, "answered by the listener"));
  const answer = once(server, "close") as Promise<[CloseEvent]>;
  server.close(1000, "done");
  await closed;
  expect((await answer)[0].code).toBe(4001);
});

it("finds an alarm handler that the constructor has installed on the object", async () => {
  const stub = test.env["Installed"]?.getByName("a") as unknown as Installed;
  await stub.arm();
  expect(
    await waitUntil(
      () => stub.count(),
      (count) => count === 1,
    ),
  ).toBe(1);
});

it("follows redirects to the same object, unless the request says otherwise", async () => {
  const stub = turns();
  const followed = await stub.fetch("https://example.com/redirect#part");
  expect([followed.url, followed.redirected, await followed.text()]).toEqual([
    "https://example.com/landed?q=1",
    true,
    "GET https://example.com/landed?q=1",
  ]);
  const manual = await stub.fetch("https://example.com/redirect", { redirect: "manual" });
  expect([manual.status, manual.url, manual.redirected]).toEqual([
    302,
    "https://example.com/redirect",
    false,
  ]);
  const posted = await stub.fetch("https://example.com/see-other", { method: "POST", body: "x" });
  expect(await posted.text()).toBe("GET https://example.com/landed");
  const again = await stub.fetch("https://example.com/again", { method: "POST", body: "x" });
  expect(await again.text()).toBe("POST https://example.com/landed");
  const stream = new Request("https://example.com/again", { method: "POST", body: "x" });
  await expect(stub.fetch(stream)).rejects.toThrow("used up");
  await expect(stub.fetch("https://example.com/loop")).rejects.toThrow("Too many redirects.");
});

it("keeps credentials in a redirect to the same origin only", async () => {
  const init = { headers: { authorization: "Bearer secret" } };
  expect(await (await turns().fetch("https://example.com/here", init)).text()).toBe("Bearer secret");
  expect(await (await turns().fetch("https://example.com/elsewhere", init)).text()).toBe("");
});

it("lets a program replace the WebSocket of a response, as mocks do", () => {
  const response = new Response(null);
  Object.defineProperty(response, "webSocket", { value: "mine" });
  expect((response as unknown as Upgrade).webSocket).toBe("mine");
});
