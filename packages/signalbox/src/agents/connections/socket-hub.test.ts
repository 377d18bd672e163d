import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import type { LocalSocket } from "../../engines/http-server/index.ts";
import { SocketHub } from "./socket-hub.ts";

const PING_MS = 50;

const server = createServer();
let accepted: Socket;
let client: Socket;

afterEach(() => {
  accepted.destroy();
  client.destroy();
  server.close();
});

it("after a stall of the process, reads what has arrived before it judges a socket", async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  [accepted] = (await once(server, "connection")) as [Socket];
  const order: string[] = [];
  accepted.on("data", () => order.push("pong"));
  const hub = new SocketHub({ pingIntervalMs: PING_MS, maxBufferedBytes: 2 ** 20 });
  const checked = new Promise<void>((resolve) => {
    const checkAlive = () => {
      order.push("check");
      resolve();
    };
    hub.addSocket({ checkAlive, close: () => undefined } as unknown as LocalSocket);
  });
  await new Promise((resolve) => setImmediate(resolve));
  hub.start();
  // In the buffer of the system at once; nothing reads it during the stall.
  client.write("x");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3 * PING_MS);
  await checked;
  hub.closeAll(1012, "");
  expect(order).toEqual(["pong", "check"]);
});
