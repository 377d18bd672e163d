import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { waitUntil } from "../../../../../test/support/wait-until.ts";
import type { ObjectContext } from "./object-context.ts";
import { openHost, type TestHost } from "./object-host-fixture.ts";
import { WebSocketPair, WebSocketRequestResponsePair, type WorkerWebSocket } from "./web-socket.ts";
import { DurableObject } from "./workers-module.ts";

const until = (check: () => boolean | Promise<boolean>) => waitUntil(check, (isTrue) => isTrue);

let constructions = 0;

class Room extends DurableObject {
  declare readonly ctx: ObjectContext;

  constructor(ctx: ObjectContext, env: unknown) {
    super(ctx, env);
    constructions += 1;
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
  }

  fetch(request: Request): Response {
    const { 0: client, 1: server } = new WebSocketPair();
    const mode = new URL(request.url).pathname;
    if (mode === "/plain") {
      server.accept();
      server.addEventListener("message", (event) => {
        const data = String((event as MessageEvent).data);
        this.ctx.storage.kv.put("last", data);
        server.send(`plain ${data}`);
      });
    } else {
      this.ctx.acceptWebSocket(server, ["all", mode.slice(1)]);
      server.serializeAttachment({ mode, seen: 0 });
    }
    // Before the client has accepted: the frame is kept.
    server.send("welcome");
    return new Response(null, { status: 101, webSocket: client } as ResponseInit);
  }

  webSocketMessage(webSocket: WorkerWebSocket, message: string | ArrayBuffer): void {
    if (message === "fail") throw new Error("failed");
    if (message === "abort") this.ctx.abort("reset by a message");
    const attachment = webSocket.deserializeAttachment() as { mode: string; seen: number };
    attachment.seen += 1;
    webSocket.serializeAttachment(attachment);
    const text = typeof message === "string" ? message : `${message.byteLength} bytes`;
    for (const other of this.ctx.getWebSockets()) other.send(`${attachment.mode} ${attachment.seen} ${text}`);
  }

  webSocketClose(webSocket: WorkerWebSocket, code: number, reason: string, wasClean: boolean): void {
    this.ctx.storage.kv.put("closed", [code, reason, wasClean, this.ctx.getTags(webSocket)]);
  }

  state(): unknown {
    const { storage } = this.ctx;
    return [storage.kv.get("closed"), storage.kv.get("last"), this.ctx.getWebSockets("all").length];
  }

  tagged(tag: string): number {
    return this.ctx.getWebSockets(tag).length;
  }
}

let folder: string;
let test: TestHost;
beforeEach(async () => {
  constructions = 0;
  folder = await mkdtemp(join(tmpdir(), "signalbox-sockets-"));
  test = await openHost(folder, { Room }, { idleTimeoutMs: 3_600_000 });
});
afterEach(async () => {
  await test.close();
  await rm(folder, { recursive: true, force: true });
});

type RoomStub = { fetch: typeof fetch; state(): Promise<unknown>; tagged(tag: string): Promise<number> };
const room = () => test.env["Room"]?.getByName("a") as unknown as RoomStub;

interface Client {
  readonly webSocket: WorkerWebSocket;
  readonly received: string[];
  readonly closes: [number, string][];
}

async function connect(mode: string): Promise<Client> {
  const response = await room().fetch(`http://x/${mode}`, { headers: { upgrade: "websocket" } });
  const { webSocket } = response as Response & { webSocket: WorkerWebSocket };
  expect([response.status, response instanceof Response]).toEqual([101, true]);
  const client: Client = { webSocket, received: [], closes: [] };
  webSocket.addEventListener("message", (event) =>
    client.received.push(String((event as MessageEvent).data)),
  );
  webSocket.addEventListener("close", (event) => {
    const { code, reason } = event as CloseEvent;
    client.closes.push([code, reason]);
  });
  webSocket.accept();
  return client;
}

/** Lets the object leave memory, as it does when it was idle for long. */
async function hibernate(): Promise<boolean> {
  await until(() => [...test.instances()].every((instance) => instance.isIdle));
  for (const instance of test.instances()) instance.hibernate();
  return test.directory.size === 0;
}

describe("a hibernating WebSocket", () => {
  it("stays open while the object is not in memory, with its attachment and tags", async () => {
    const client = await connect("x");
    await until(() => client.received.length === 1);
    client.webSocket.send("one");
    await until(() => client.received.length === 2);
    expect(await hibernate()).toBe(true);
    client.webSocket.send(new Uint8Array(3));
    await until(() => client.received.length === 3);
    expect(client.received).toEqual(["welcome", "/x 1 one", "/x 2 3 bytes"]);
    expect([constructions, await room().tagged("x"), await room().tagged("y")]).toEqual([2, 1, 0]);
  });

  it("answers a ping without loading the object", async () => {
    const client = await connect("x");
    expect(await hibernate()).toBe(true);
    client.webSocket.send("ping");
    await until(() => client.received.includes("pong"));
    expect([test.directory.size, constructions]).toEqual([0, 1]);
  });

  it("that the client closes is reported, also to an object that is not in memory", async () => {
    const client = await connect("x");
    expect(await hibernate()).toBe(true);
    client.webSocket.close(4001, "enough");
    await until(async () => ((await room().state()) as unknown[])[0] !== undefined);
    expect(await room().state()).toEqual([[4001, "enough", true, ["all", "x"]], undefined, 0]);
    await until(() => client.closes.length > 0);
    expect(client.closes).toEqual([[4001, "enough"]]);
  });

  it("survives a handler that throws, and is cut when the object is aborted", async () => {
    const client = await connect("x");
    client.webSocket.send("fail");
    client.webSocket.send("two");
    await until(() => client.received.includes("/x 1 two"));
    client.webSocket.send("abort");
    await until(() => client.closes.length === 1);
    expect(client.closes[0]?.[0]).toBe(1006);
    expect(await room().state()).toEqual([undefined, undefined, 0]);
  });
});

describe("a WebSocket that was accepted without hibernation", () => {
  it("keeps the object in memory while it is open, and its events can write", async () => {
    const client = await connect("plain");
    client.webSocket.send("hello");
    await until(() => client.received.includes("plain hello"));
    expect([...test.instances()].map(({ isIdle }) => isIdle)).toEqual([false]);
    expect(await room().state()).toEqual([undefined, "hello", 0]);
    client.webSocket.close(1000, "");
    expect(await hibernate()).toBe(true);
  });
});

describe("a pair", () => {
  it("keeps frames until they are accepted, and refuses to send before accept and after close", async () => {
    const [a, b] = new WebSocketPair();
    const received: unknown[] = [];
    expect(() => a?.send("early")).toThrow("accept()");
    a?.accept();
    a?.send("1");
    a?.close(4000, "bye");
    expect(() => a?.close(999)).toThrow("Invalid WebSocket close code");
    b?.addEventListener("message", (event) => received.push((event as MessageEvent).data));
    b?.addEventListener("close", (event) => received.push((event as CloseEvent).code));
    b?.accept();
    await new Promise((resolve) => setImmediate(resolve));
    expect([received, a?.readyState, b?.readyState]).toEqual([["1", 4000], 3, 3]);
  });

  it("has attachments up to 16 KiB", () => {
    const [a] = new WebSocketPair();
    a?.serializeAttachment("x".repeat(16_000));
    expect(() => a?.serializeAttachment("x".repeat(17_000))).toThrow("cannot be larger than 16384 bytes");
    expect(a?.deserializeAttachment()).toHaveLength(16_000);
  });
});
