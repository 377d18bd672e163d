import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { MemoryBudget } from "../../engines/http-server/index.ts";
import { MessageLane } from "./message-lane.ts";
import { UniversalCalls } from "./universal-calls.ts";

const servers: WebSocketServer[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    for (const client of server.clients) client.terminate();
    server.close();
  }
});

/** Two ends of a WebSocket on loopback. */
async function pair(): Promise<{ near: WebSocket; far: WebSocket }> {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  servers.push(server);
  await once(server, "listening");
  const far = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const [near] = (await once(server, "connection")) as [WebSocket];
  await once(far, "open");
  return { near, far };
}

it("events that arrive while one waits follow it in their order, and the socket is not read meanwhile", async () => {
  const { near, far } = await pair();
  const lane = new MessageLane(near, near);
  const handled: string[] = [];
  const first = Promise.withResolvers<void>();
  const third = Promise.withResolvers<void>();
  lane.arrive(10, () => first.promise.then(() => void handled.push("first")));
  expect(near.isPaused).toBe(true);
  lane.arrive(20, () => (handled.push("second"), null));
  lane.arrive(30, () => third.promise.then(() => void handled.push("third")));
  lane.arrive(0, () => (handled.push("closed"), null));
  expect(lane.heldBytes).toBe(50);
  expect(handled).toEqual([]);
  first.resolve();
  await expect.poll(() => handled).toEqual(["first", "second"]);
  expect(near.isPaused).toBe(true);
  third.resolve();
  await expect.poll(() => handled).toEqual(["first", "second", "third", "closed"]);
  await expect.poll(() => near.isPaused).toBe(false);
  expect(lane.heldBytes).toBe(0);
  far.terminate();
});

it("nothing held is handled after the end, and the socket is read to its end", async () => {
  const { near, far } = await pair();
  const lane = new MessageLane(near, near);
  const waiting = Promise.withResolvers<void>();
  let handled = 0;
  lane.arrive(1, () => waiting.promise);
  lane.arrive(1, () => ((handled += 1), null));
  lane.stop();
  expect([near.isPaused, lane.heldBytes]).toEqual([false, 0]);
  waiting.resolve();
  lane.arrive(1, () => ((handled += 1), null));
  const closed = once(near, "close");
  far.close(1000);
  await closed;
  expect(handled).toBe(0);
});

it("a side that does not read stops the other one, and a wait that ends meanwhile does not start it again", async () => {
  const from = await pair();
  const to = await pair();
  const lane = new MessageLane(from.near, to.near);
  const waiting = Promise.withResolvers<void>();
  to.far.pause();
  lane.arrive(1, () => waiting.promise);
  const message = Buffer.alloc(256 * 1024);
  while (lane.stalledSince === null) lane.send(message, true);
  waiting.resolve();
  await waiting.promise;
  await new Promise((resolve) => setImmediate(resolve));
  expect(from.near.isPaused).toBe(true);
  to.far.resume();
  await expect.poll(() => lane.stalledSince).toBeNull();
  expect(from.near.isPaused).toBe(false);
});

const CREATE = JSON.stringify({ type: "universal.create", request: { provider: "echo" } });

/** The calls of a universal socket, with what its client has received. */
async function universal(call: () => Promise<Response>) {
  const { near, far } = await pair();
  const memory = new MemoryBudget({ maxBytes: 2 ** 24, stallMs: 60_000 }).shareOf("default");
  const parts = { target: "/v1/default/default", headers: {}, maxMessageBytes: 2 ** 20, memory };
  const calls = new UniversalCalls({ ...parts, client: near, server: { call } });
  const received: { readonly type: string; readonly response?: unknown }[] = [];
  far.on("message", (data: Buffer) =>
    received.push(JSON.parse(data.toString("utf8")) as (typeof received)[number]),
  );
  return { near, far, memory, calls, received };
}

it("calls above the limit of a universal socket wait although they were read, and a socket that is not read is not cut", async () => {
  const answers: (() => void)[] = [];
  let begun = 0;
  const { near, calls, received } = await universal(() => {
    begun += 1;
    return new Promise((resolve) => answers.push(() => resolve(new Response("{}"))));
  });
  // As `ws` does with frames of one read, whether the socket is paused or not.
  for (let i = 0; i < 40; i++) near.emit("message", Buffer.from(CREATE), false);
  expect([begun, near.isPaused]).toEqual([32, true]);
  for (let i = 0; i < 3; i++) calls.checkAlive();
  expect(near.readyState).toBe(WebSocket.OPEN);
  answers.shift()?.();
  await expect.poll(() => begun).toBe(33);
  expect(near.isPaused).toBe(true);
  await expect
    .poll(() => {
      for (const answer of answers.splice(0)) answer();
      return received.length;
    })
    .toBe(40);
  await expect.poll(() => near.isPaused).toBe(false);
  const answered = once(near, "pong");
  calls.checkAlive();
  await answered;
  calls.checkAlive();
  expect(near.readyState).toBe(WebSocket.OPEN);
  calls.checkAlive();
  expect(near.readyState).not.toBe(WebSocket.OPEN);
});

it("an event of a universal socket whose end has not arrived is in the memory of its caller, wherever it is split", async () => {
  const { readable, writable } = new TransformStream<Uint8Array<ArrayBuffer>>();
  const writer = writable.getWriter();
  const { far, memory, received } = await universal(async () => {
    return new Response(readable, { headers: { "content-type": "text/event-stream" } });
  });
  const write = (text: string) => writer.write(new TextEncoder().encode(text));
  far.send(CREATE);
  const long = { text: "x".repeat(100_000) };
  const [start, end] = [JSON.stringify(long).slice(0, -1), "}"];
  await write(`data: ${start}`);
  await expect.poll(() => memory.used).toBeGreaterThan(200_000);
  for (const text of [end, "\r", "\n", "\r", "\ndata: 2\n", "\nda"]) await write(text);
  await expect.poll(() => received.map(({ response }) => response)).toEqual([undefined, long, 2]);
  await expect.poll(() => memory.used).toBeLessThan(1000);
  await writer.close();
  await expect.poll(() => memory.used).toBe(0);
});
