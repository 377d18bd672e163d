/** Clients and programs that do what they should not: the server goes on, and nothing is half-written. */
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect as connectTcp } from "node:net";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { exchangeFramed, WRONG_LENGTHS } from "../hostile/support/framed-responses.ts";
import { RawSocket } from "../support/raw-socket.ts";
import { startWorker, type WorkerServer } from "./support/worker-server.ts";

const HANDSHAKE =
  "Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

const MAX_CONNECTIONS = 30;

let server: WorkerServer;
beforeAll(async () => {
  server = await startWorker("hostile/src/server.ts", {
    file: {
      agents: { access: "worker", idleTimeoutMs: 200, maxBufferedBytes: 1024 * 1024 },
      listener: { gracePeriodMs: 500, maxConnections: MAX_CONNECTIONS },
    },
  });
});
afterAll(() => server.remove());

interface Answer {
  readonly value?: unknown;
  readonly error?: string;
}

async function ask(name: string, method: string, ...args: unknown[]): Promise<Answer> {
  const query = new URLSearchParams({ args: JSON.stringify(args) });
  return (await fetch(`${server.url}/${name}/${method}?${String(query)}`)).json() as Promise<Answer>;
}

async function connect(name: string): Promise<WebSocket> {
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/${name}`);
  await once(socket, "open");
  return socket;
}

test("ctx.abort() in a transaction undoes it, and the next call finds the object as it was", async () => {
  expect(await ask("aborted", "abortInTransaction")).toEqual({ error: "Error: in a transaction" });
  expect(await ask("aborted", "abortInTransactionSync")).toEqual({
    error: "Error: in a synchronous transaction",
  });
  expect(await ask("aborted", "abortAndGoOn")).toEqual({ error: "Error: in a transaction that goes on" });
  for (const key of ["transaction", "sync", "on"])
    expect(await ask("aborted", "read", key)).toEqual({ value: null });
  await ask("aborted", "put", "after", 1);
  expect(await ask("aborted", "read", "after")).toEqual({ value: 1 });
});

test("what cannot be copied is refused, what can be is, and functions are called where they are", async () => {
  expect((await ask("values", "storeFunction")).error).toMatch(/^DataCloneError: /);
  expect((await ask("values", "returnSymbol")).error).toMatch(/^DataCloneError: /);
  expect(await ask("values", "functions")).toEqual(["called", 2]);
  expect(await ask("values", "cycle")).toEqual(["cycle", true]);
  expect(await ask("values", "recurse", 50)).toEqual({ value: 50 });
});

test("tags and attachments have limits", async () => {
  const tags = Array.from({ length: 11 }, (_, i) => `t${i}`);
  expect((await ask("limits", "tag", tags)).value).toMatch(/more than 10 tags/);
  expect((await ask("limits", "tag", ["x".repeat(257)])).value).toMatch(/max tag length/);
  expect((await ask("limits", "tag", [1])).value).toMatch(/strings/);
  expect((await ask("limits", "attach", 16_000)).value).toBe("attached");
  expect((await ask("limits", "attach", 16_385)).value).toMatch(/cannot be larger than 16384/);
});

test("deleteAll() removes the alarm, too", async () => {
  expect(await ask("armed", "armAndDelete", 1)).toEqual({ value: null });
  // A second alarm that rings shows that the time of the first has passed.
  await ask("later", "arm", 50);
  await expect.poll(() => ask("later", "read", "rang")).toEqual({ value: true });
  expect(await ask("armed", "read", "rang")).toEqual({ value: null });
});

test("a client that sends ten thousand messages at once has all of them handled, in order", async () => {
  const socket = await connect("burst");
  const answer = Promise.race([
    once(socket, "message").then(([data]) => String(data)),
    once(socket, "close").then(([code, reason]) => `closed ${String(code)} ${String(reason)}`),
  ]);
  for (let i = 0; i < 9999; i += 1) socket.send(`slow ${i}`);
  socket.send("slow last");
  expect(await answer).toBe("all");
  await expect.poll(() => ask("burst", "received")).toEqual({ value: 10_000 });
  expect(await ask("burst", "order")).toEqual({ value: true });
  socket.close();
  await expect.poll(() => ask("burst", "closed")).toEqual({ value: [1005] });
});

test("a client that does not read is cut, and one that vanishes is noticed", async () => {
  const slow = await connect("flood");
  slow.pause();
  slow.send("flood 10000");
  await expect.poll(() => ask("flood", "open")).toEqual({ value: 0 });
  slow.terminate();
  const raw = connectTcp(Number(new URL(server.url).port));
  raw.write(`GET /half HTTP/1.1\r\n${HANDSHAKE}`);
  await once(raw, "data");
  expect(await ask("half", "open")).toEqual({ value: 1 });
  raw.destroy();
  await expect.poll(() => ask("half", "closed")).toEqual({ value: [1006] });
});

test.each(WRONG_LENGTHS)("a response of the program with %s is framed by the server", async (...wrong) => {
  const health = await (await fetch(`${server.url}/healthz`)).text();
  expect(await exchangeFramed(server.url, "/framed", wrong)).toEqual([wrong[2] ?? "", health]);
});

test("the length of a body that is passed on is kept, and that of a changed one is not", async () => {
  const page = "<p>Hello NAME</p>";
  const origin = createServer((_request, response) => {
    response.writeHead(200, { "content-length": page.length }).end(page);
  });
  origin.listen(0, "127.0.0.1");
  await once(origin, "listening");
  onTestFinished(() => void origin.close());
  const from = `http://127.0.0.1:${(origin.address() as AddressInfo).port}/`;
  const read = async (path: string, method = "GET") => {
    const response = await fetch(`${server.url}${path}?${String(new URLSearchParams({ from }))}`, { method });
    return [response.headers.get("content-length"), await response.text()];
  };
  expect(await read("/passed")).toEqual([String(page.length), page]);
  expect(await read("/rewritten")).toEqual([null, "<p>Hello a longer name</p>"]);
  expect(await read("/passed", "HEAD")).toEqual([String(page.length), ""]);
});

test("the answer to a handshake may be endless: it is sent as it comes, and ends with its client", async () => {
  const raw = new RawSocket(server.url);
  raw.write(`GET /endless HTTP/1.1\r\n${HANDSHAKE}`);
  await raw.until("more more more");
  raw.destroy();
  await expect.poll(async () => (await fetch(`${server.url}/cancelled`)).text()).toBe("1");
});

test.each(["/plain", "/never"])(
  "the connection of a handshake at %s ends with its client, so that there is room for others",
  async (path) => {
    for (let i = 0; i < 2 * MAX_CONNECTIONS; i++) {
      const raw = new RawSocket(server.url, { allowHalfOpen: true });
      raw.write(`GET ${path} HTTP/1.1\r\n${HANDSHAKE}`);
      if (path === "/plain") {
        await raw.until("\r\n\r\n");
        raw.write("123456");
      }
      raw.socket.end();
      await raw.closed();
    }
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  },
);

test("a stop does not wait for ever for requests that never end", async () => {
  const never = fetch(`${server.url}/never`).catch(() => "cut");
  const endless = await fetch(`${server.url}/endless`);
  const body = endless.text().catch(() => "cut");
  const exit = once(server.child, "exit");
  server.child.kill("SIGTERM");
  expect((await exit)[0]).toBe(0);
  expect([await never, await body]).toEqual(["cut", "cut"]);
});
