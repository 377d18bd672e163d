import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { TcpProxy } from "./tcp-proxy.ts";

/** An echo server behind a proxy, and a client of it. */
async function openEcho() {
  const received: Buffer[] = [];
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      received.push(chunk);
      socket.write(chunk);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const proxy = await TcpProxy.open((server.address() as AddressInfo).port);
  onTestFinished(async () => {
    await proxy.close();
    server.close();
  });
  return { proxy, received: () => Buffer.concat(received) };
}

async function dial(
  proxy: TcpProxy,
): Promise<{ socket: Socket; echoed: () => Buffer; closed: () => boolean }> {
  const socket = connect(proxy.port, "127.0.0.1");
  const chunks: Buffer[] = [];
  let isClosed = false;
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.on("error", () => undefined);
  socket.on("close", () => (isClosed = true));
  // A refused connection may be reset before it is reported as connected.
  await once(socket, "connect").catch(() => undefined);
  onTestFinished(() => void socket.destroy());
  return { socket, echoed: () => Buffer.concat(chunks), closed: () => isClosed };
}

it("passes bytes unchanged, also with a delay that changes", async () => {
  const { proxy } = await openEcho();
  const { socket, echoed } = await dial(proxy);
  const sent = randomBytes(3_000_000);
  for (let i = 0; i < 30; i++) {
    proxy.delay((i * 7) % 20);
    socket.write(sent.subarray(i * 100_000, (i + 1) * 100_000));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await expect.poll(() => echoed().length).toBe(sent.length);
  expect(echoed().equals(sent)).toBe(true);
});

it("holds one direction without an error, and delivers the held bytes after healing", async () => {
  const { proxy, received } = await openEcho();
  const { socket, echoed, closed } = await dial(proxy);
  socket.write("a");
  await expect.poll(() => String(echoed())).toBe("a");
  proxy.hold("down");
  socket.write("b");
  await expect.poll(() => String(received())).toBe("ab");
  expect(String(echoed())).toBe("a");
  proxy.hold("up");
  socket.write("c");
  // A connection of its own is held, too.
  const second = await dial(proxy);
  second.socket.write("z");
  expect([String(received()), closed()]).toEqual(["ab", false]);
  proxy.heal();
  await expect.poll(() => String(echoed())).toBe("abc");
  await expect.poll(() => String(second.echoed())).toBe("z");
});

it("resets connections when it is cut, refuses new ones, and accepts them after healing", async () => {
  const { proxy } = await openEcho();
  const first = await dial(proxy);
  first.socket.write("a");
  await expect.poll(() => String(first.echoed())).toBe("a");
  proxy.cut();
  await expect.poll(() => first.closed()).toBe(true);
  const refused = await dial(proxy);
  await expect.poll(() => refused.closed()).toBe(true);
  proxy.heal();
  const second = await dial(proxy);
  second.socket.write("b");
  await expect.poll(() => String(second.echoed())).toBe("b");
});

it("resets the client if the target does not accept connections", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  const proxy = await TcpProxy.open(port);
  onTestFinished(() => proxy.close());
  const { closed } = await dial(proxy);
  await expect.poll(() => closed()).toBe(true);
});
