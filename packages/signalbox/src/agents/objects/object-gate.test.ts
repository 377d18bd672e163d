/** Nothing that an object sends leaves before its writes are durable; a store whose syncs wait for the test shows it. */
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { waitUntil } from "../../../../../test/support/wait-until.ts";
import type { ObjectContext } from "./object-context.ts";
import { openHost, type TestHost } from "./object-host-fixture.ts";
import { WebSocketPair, type WorkerWebSocket } from "./web-socket.ts";
import { DurableObject } from "./workers-module.ts";

const heard: string[] = [];
let url: string;

class Receiver extends DurableObject {
  note(text: string): void {
    heard.push(text);
  }
}

class Sender extends DurableObject<
  Record<string, { getByName(name: string): { note(text: string): unknown } }>
> {
  declare readonly ctx: ObjectContext;

  #write(): void {
    this.ctx.storage.kv.put("written", Math.random());
  }

  answer(): string {
    this.#write();
    return "answered";
  }

  fail(): never {
    this.#write();
    throw new Error("refused");
  }

  callOther(): void {
    this.#write();
    this.env["Receiver"]?.getByName("r").note("called");
  }

  fetchOutside(): void {
    this.#write();
    this.ctx.waitUntil(fetch(url));
  }

  fetch(request: Request): Response {
    if (request.url.endsWith("/chunks")) return new Response(this.#chunks());
    const { 0: client, 1: server } = new WebSocketPair();
    this.ctx.acceptWebSocket(server);
    return new Response(null, { status: 101, webSocket: client } as ResponseInit);
  }

  /** The second chunk follows a write. */
  #chunks(): ReadableStream {
    const bytes = new TextEncoder().encode("chunk");
    let count = 0;
    return new ReadableStream(
      {
        pull: (controller) => {
          count += 1;
          if (count === 2) this.#write();
          controller.enqueue(bytes);
          if (count === 2) controller.close();
        },
      },
      { highWaterMark: 0 },
    );
  }

  webSocketMessage(webSocket: WorkerWebSocket): void {
    webSocket.send("before the write");
    this.#write();
  }
}

let folder: string;
let test: TestHost;
let server: Server;
/** Set to make syncs wait. */
let gate: Promise<void> | null = null;
let waiting = 0;
beforeEach(async () => {
  heard.length = 0;
  waiting = 0;
  server = createServer((_request, response) => {
    heard.push("fetched");
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  folder = await mkdtemp(join(tmpdir(), "signalbox-gate-"));
  test = await openHost(
    folder,
    { Sender, Receiver },
    {
      beforeSync: async () => {
        waiting += 1;
        await gate;
      },
    },
  );
});
afterEach(async () => {
  await test.close();
  server.close();
  await rm(folder, { recursive: true, force: true });
});

type Calls = Record<string, () => Promise<unknown>> & { fetch: typeof fetch };
const sender = () => test.env["Sender"]?.getByName("s") as unknown as Calls;

async function socket(): Promise<WorkerWebSocket> {
  const response = await sender().fetch("http://x/");
  const { webSocket } = response as Response & { webSocket: WorkerWebSocket };
  webSocket.addEventListener("message", () => heard.push("frame"));
  webSocket.accept();
  return webSocket;
}

const note = (text: string) => () => void heard.push(text);
const OUTPUTS: [string, string, () => void, () => Promise<void>][] = [];
let webSocket: WorkerWebSocket | null = null;
let body: ReadableStreamDefaultReader<Uint8Array> | undefined;
OUTPUTS.push(
  ["a result", "answered", () => void sender()["answer"]?.().then(note("answered")), async () => {}],
  ["an error", "failed", () => void sender()["fail"]?.().catch(note("failed")), async () => {}],
  ["a call of another object", "called", () => void sender()["callOther"]?.(), async () => {}],
  ["a request to the outside", "fetched", () => void sender()["fetchOutside"]?.(), async () => {}],
  [
    "a later chunk of a response",
    "chunk",
    () => void body?.read().then(note("chunk")),
    async () => {
      body = (await sender().fetch("http://x/chunks")).body?.getReader();
      await body?.read();
    },
  ],
  [
    "a frame, also one that was sent before the write",
    "frame",
    () => webSocket?.send("go"),
    async () => {
      webSocket = await socket();
    },
  ],
);

describe("before the writes are durable", () => {
  it.each(OUTPUTS)("%s does not leave", async (_output, text, send, prepare) => {
    await sender()["answer"]?.();
    await prepare();
    const released = Promise.withResolvers<void>();
    gate = released.promise;
    const before = waiting;
    send();
    // The write has reached its sync, which waits.
    await waitUntil(
      () => waiting,
      (count) => count > before,
    );
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    expect(heard).toEqual([]);
    gate = null;
    released.resolve();
    await waitUntil(
      () => heard.includes(text),
      (isHeard) => isHeard,
    );
  });
});
