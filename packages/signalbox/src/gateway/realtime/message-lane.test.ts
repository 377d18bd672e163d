import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { MessageLane } from "./message-lane.ts";

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
