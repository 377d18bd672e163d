/** Connections of a listener that is retired or drains. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import type { HttpApplication, ListenerEngine } from "./application.ts";
import type { ServedResponse } from "./http-exchange.ts";
import { Listener } from "./listener.ts";

const LIMITS = {
  maxHeaderBytes: 16_384,
  headerTimeoutMs: 600_000,
  bodyTimeoutMs: 600_000,
  idleTimeoutMs: 600_000,
  maxConnections: 10,
};

/** A listener whose responses the test ends, and a connection to it. */
async function open(engine: ListenerEngine) {
  const waiting = new Map<string, ServedResponse | null>();
  const application: HttpApplication = {
    requestId: () => "1",
    handle: ({ url = "" }, response) => void waiting.set(url, response),
    // The socket is forgotten.
    upgrade: ({ url = "" }) => void waiting.set(url, null),
    refuse: (_refusal, response) => void response.end(),
    refusalText: () => "",
    ended: () => undefined,
    connection: () => undefined,
    malformed: () => undefined,
  };
  const listener = new Listener(application, LIMITS, null, engine);
  const { port } = await listener.listen("127.0.0.1", 0);
  const socket: Socket = connect(port, "127.0.0.1");
  let text = "";
  socket.setEncoding("latin1").on("data", (data: string) => (text += data));
  onTestFinished(async () => {
    socket.destroy();
    listener.drain();
    await listener.close(0);
  });
  return {
    listener,
    socket,
    send: (...paths: string[]) =>
      socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`).join("")),
    /** Resolves when the request has been received. */
    async received(path: string): Promise<ServedResponse> {
      await expect.poll(() => waiting.has(path)).toBe(true);
      return waiting.get(path) as ServedResponse;
    },
    has: (path: string) => waiting.has(path),
    connections: () => [...text.matchAll(/^Connection: (\S+)/gim)].map(([, value]) => value),
    text: () => text,
  };
}

describe.each(["own", "node"] as const)("engine %s", (engine) => {
  it("a retired listener answers all pipelined requests, and the last response closes the connection", async () => {
    const { listener, socket, send, received, connections } = await open(engine);
    send("/1", "/2", "/3");
    await received("/3");
    listener.retire();
    for (const path of ["/3", "/1", "/2"]) (await received(path)).end(path);
    await once(socket, "close");
    expect(connections()).toEqual(["keep-alive", "keep-alive", "close"]);
  });

  it("a retired listener that others replace accepts no connection, and leaves idle ones open until it drains", async () => {
    const { listener, socket, send, received, connections } = await open(engine);
    send("/1");
    (await received("/1")).end();
    await expect.poll(connections).toEqual(["keep-alive"]);
    const port = socket.remotePort as number;
    listener.retire(false);
    const [error] = (await once(connect(port, "127.0.0.1"), "error")) as [NodeJS.ErrnoException];
    expect(error.code).toBe("ECONNREFUSED");
    // A request that was on its way is answered.
    send("/2");
    (await received("/2")).end();
    await once(socket, "close");
    expect(connections()).toEqual(["keep-alive", "close"]);
  });

  it("a request behind a response that closes the connection is not handled", async () => {
    const { listener, socket, send, received, has, text } = await open(engine);
    listener.retire();
    send("/stream");
    const stream = await received("/stream");
    stream.writeHead(200);
    stream.write("first");
    await expect.poll(text).toContain("first");
    send("/late");
    const other = connect(socket.remotePort as number, "127.0.0.1");
    other.write("GET /other HTTP/1.1\r\nhost: x\r\n\r\n");
    // Received later than the one before.
    (await received("/other")).end();
    expect(has("/late")).toBe(false);
    stream.end("last");
    await once(socket, "close");
    expect(text()).toContain("last");
    other.destroy();
  });

  it("a stream that outlives the retired phase is finished while the listener drains", async () => {
    const { listener, socket, send, received, text } = await open(engine);
    send("/stream");
    const stream = await received("/stream");
    stream.writeHead(200);
    stream.write("first");
    await expect.poll(text).toContain("first");
    listener.retire();
    listener.drain();
    let isClosed = false;
    const closed = listener.close(60_000).then(() => (isClosed = true));
    stream.write("second");
    await expect.poll(text).toContain("second");
    expect(isClosed).toBe(false);
    stream.end("last");
    await once(socket, "close");
    await closed;
    expect(text()).toMatch(/last\r\n0\r\n\r\n$/);
  });

  it("a connection that was handed over and never ended is cut after the grace period", async () => {
    const { listener, socket, has } = await open(engine);
    socket.write(
      "GET /socket HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nunread",
    );
    await expect.poll(() => has("/socket")).toBe(true);
    listener.drain();
    await listener.close(0);
  });
});
