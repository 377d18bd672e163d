/** When a connection is reused (invariant 2), and when a request is sent again because the connection was closed (invariant 3). */
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { Worker } from "node:worker_threads";
import { afterEach, expect, it } from "vitest";
import { UpstreamClient } from "./upstream-client.ts";
import { NO_BODY, type RequestBody } from "../../core/request-body.ts";
import { toOrigin, type UpstreamFailure } from "./upstream.ts";

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const BODY: RequestBody = { kind: "whole", bytes: Buffer.from("payload") };

async function listen(onConnection: (socket: Socket, index: number) => void): Promise<number> {
  let count = 0;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    onConnection(socket, count++);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as { port: number }).port;
}

function client(): UpstreamClient {
  const made = new UpstreamClient({
    connectTimeoutMs: 30_000,
    firstByteTimeoutMs: 30_000,
    stallTimeoutMs: 30_000,
    idleTimeoutMs: 30_000,
  });
  closers.push(() => made.close());
  return made;
}

interface Result {
  status: number;
  failure: UpstreamFailure | null;
}

function send(
  upstream: UpstreamClient,
  port: number,
  {
    method = "POST",
    body = BODY,
    headers = [],
  }: { method?: string; body?: RequestBody; headers?: readonly string[] },
): Promise<Result> {
  return new Promise((resolve) => {
    const result: Result = { status: 0, failure: null };
    upstream.send(
      {
        origin: toOrigin(new URL(`http://127.0.0.1:${port}`), true),
        method,
        target: "/x",
        headers,
        body,
      },
      {
        onHead: ({ status }) => (result.status = status),
        onBody(_, isLast) {
          if (isLast) resolve(result);
        },
        onReadEnd: () => undefined,
        onFailure(failure) {
          result.failure = failure;
          resolve(result);
        },
      },
    );
  });
}

/** Answers a first request, and dies under the second one on the same connection after reading it. */
async function listenAndClose(): Promise<{ port: number; seen: string[] }> {
  const seen: string[] = [];
  const port = await listen((socket, index) => {
    let requests = 0;
    socket.on("data", (data) => {
      requests += 1;
      seen.push(`${index}:${data.toString().split(" ")[0] ?? ""}`);
      if (index === 0 && requests === 2) socket.resetAndDestroy();
      else socket.write(OK);
    });
  });
  return { port, seen };
}

it.each(["POST", "PATCH", "QUERY"])(
  "sends a %s once when the server closes the connection, because the server may have executed it",
  async (method) => {
    const { port, seen } = await listenAndClose();
    const upstream = client();
    await send(upstream, port, { method });
    expect((await send(upstream, port, { method })).failure?.kind).toBe("broken");
    expect(seen).toEqual([`0:${method}`, `0:${method}`]);
  },
);

it.each([
  ["GET", { method: "GET", body: NO_BODY }],
  ["PUT", { method: "PUT" }],
  ["DELETE", { method: "DELETE", body: NO_BODY }],
  ["POST with an idempotency key", { headers: ["a", "b", "Idempotency-Key", "k"] }],
])("sends a %s again on a new connection, because it may be executed twice", async (_, request) => {
  const { port, seen } = await listenAndClose();
  const upstream = client();
  await send(upstream, port, request);
  expect(await send(upstream, port, request)).toMatchObject({ status: 200, failure: null });
  expect(seen.map((entry) => entry.slice(0, 2))).toEqual(["0:", "0:", "1:"]);
});

/** A server in another thread that closes its first connection on command, while this thread's event loop stands still. */
async function listenElsewhere(how: "end" | "resetAndDestroy") {
  const shared = new Int32Array(new SharedArrayBuffer(8));
  const worker = new Worker(
    `const { createServer } = require("node:net");
     const { parentPort, workerData } = require("node:worker_threads");
     const { shared, how } = workerData;
     let connections = 0;
     const server = createServer((socket) => {
       const index = connections++;
       socket.on("error", () => undefined);
       socket.on("data", (data) => {
         parentPort.postMessage(index + ":" + data.toString().split(" ")[0]);
         socket.write(${JSON.stringify(OK)});
       });
       if (index > 0) return;
       const timer = setInterval(() => {
         if (Atomics.load(shared, 0) === 0) return;
         clearInterval(timer);
         socket.once("close", () => { Atomics.store(shared, 1, 1); Atomics.notify(shared, 1); });
         if (how === "end") socket.destroySoon(); else socket.resetAndDestroy();
       }, 1);
     });
     server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));`,
    { eval: true, workerData: { shared, how } },
  );
  closers.push(() => worker.terminate());
  const [port] = (await once(worker, "message")) as [number];
  const seen: string[] = [];
  worker.on("message", (text: string) => seen.push(text));
  return {
    port,
    seen,
    /** Returns when the connection is closed; no event of it can have been handled. */
    closeUnseen() {
      Atomics.store(shared, 0, 1);
      Atomics.wait(shared, 1, 0);
      // Idle for long enough that the connection is checked, and that the packet has arrived.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    },
  };
}

it.each(["end", "resetAndDestroy"] as const)(
  "detects before writing that the server closed an idle connection (%s), and opens a new one",
  async (how) => {
    const { port, seen, closeUnseen } = await listenElsewhere(how);
    const upstream = client();
    await send(upstream, port, {});
    closeUnseen();
    expect(await send(upstream, port, {})).toMatchObject({ status: 200, failure: null });
    await expect.poll(() => seen).toEqual(["0:POST", "1:POST"]);
  },
);

it("reuses a connection that was idle and is still open", async () => {
  let connections = 0;
  const port = await listen((socket) => {
    connections += 1;
    socket.on("data", () => socket.write(OK));
  });
  const upstream = client();
  await send(upstream, port, {});
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
  expect((await send(upstream, port, {})).status).toBe(200);
  expect(connections).toBe(1);
});

it.each([
  ["a second answer: the other connections of the origin are not used again", OK, [0, 1, 2, 3]],
  ["that it closes the connection: the others are", "HTTP/1.1 408 Request Timeout\r\n\r\n", [0, 1, 0, 0]],
])("a server sends to an idle connection %s", async (_, bytes, expected) => {
  const used: number[] = [];
  const sockets: Socket[] = [];
  const held = Promise.withResolvers<void>();
  const port = await listen((socket, index) => {
    sockets[index] = socket;
    socket.on("data", () => {
      used.push(index);
      const isHeld = used.length === 1;
      void (isHeld ? held.promise : Promise.resolve()).then(() => socket.write(OK));
    });
  });
  const upstream = client();
  const first = send(upstream, port, {});
  await expect.poll(() => used).toEqual([0]);
  await send(upstream, port, {});
  const closed = once(sockets[1] as Socket, "close");
  sockets[1]?.write(bytes);
  await closed;
  held.resolve();
  expect((await first).status).toBe(200);
  await send(upstream, port, {});
  await send(upstream, port, {});
  expect(used).toEqual(expected);
});

it("does not reuse a connection before the kernel has accepted the whole request", async () => {
  const heads: string[] = [];
  const port = await listen((socket) => {
    // Answers early and leaves the rest of the body unread.
    socket.once("data", (data) => {
      heads.push(data.toString("latin1", 0, 4));
      socket.pause();
      socket.write("HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno");
    });
  });
  const upstream = client();
  const body: RequestBody = {
    kind: "whole",
    bytes: Buffer.alloc(64 * 1024 * 1024, "POST /evil HTTP/1.1\r\n"),
  };
  expect((await send(upstream, port, { body })).status).toBe(413);
  expect((await send(upstream, port, { body: NO_BODY, method: "GET" })).status).toBe(413);
  expect(heads).toEqual(["POST", "GET "]);
});

it("fails calls that wait for a connection when the client is closed", async () => {
  const upstream = client();
  // Closed before the attempt to connect has an outcome.
  const waiting = send(upstream, 1, {});
  upstream.close();
  expect((await waiting).failure?.kind).toBe("unreachable");
});
