/** A provider with invalid HTTP: ambiguous responses become a 502, unusual ones are normalized. */
import { once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { callPath, post, rawExchange, readLogs } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

let provider: Server;
let server: TestServer;
/** The response to each read on a connection. */
let answer: (socket: Socket, connection: number, read: number) => void;
let reads: string[] = [];
const sockets = new Set<Socket>();
beforeAll(async () => {
  let connections = 0;
  provider = createServer((socket) => {
    const connection = connections++;
    let read = 0;
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("data", (data) => {
      reads.push(`${connection} ${data.toString("latin1").split("\r\n\r\n")[1] ?? ""}`);
      answer(socket, connection, read++);
    });
  }).listen(0, "127.0.0.1");
  await once(provider, "listening");
  const { port } = provider.address() as AddressInfo;
  server = await startTestServer({
    file: { providers: { openai: { baseUrl: `http://127.0.0.1:${port}` } } },
  });
});
afterAll(async () => {
  await server.stop();
  for (const socket of sockets) socket.destroy();
  provider.close();
});
beforeEach(() => {
  reads = [];
});

const head = `GET ${callPath("openai/x")} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`;

it.each([
  ["a 204 that announces a body", "HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n", "204 No Content"],
  ["a 204 that sends a body", "HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello", "204 No Content"],
  ["a 304 with a length", "HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", "304 Not Modified"],
  ["a 103 with a length first", `HTTP/1.1 103 Early Hints\r\ncontent-length: 5\r\n\r\n${OK}`, "200 OK"],
])("%s is relayed correctly", async (_, wire, status) => {
  answer = (socket) => void socket.write(wire);
  const text = await rawExchange(server, head, /\r\n\r\n(ok)?$/);
  expect(text).toMatch(new RegExp(`^HTTP/1\\.1 ${status}\r\n`));
  expect(/content-length: (\d+)/i.exec(text)?.[1]).toBe(status === "200 OK" ? "2" : undefined);
});

it.each([
  ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nok"],
  [
    "a length and chunked encoding",
    "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
  ],
  ["a NUL in a header", "HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 2\r\n\r\nok"],
  ["a header name with a space", "HTTP/1.1 200 OK\r\nx y: a\r\ncontent-length: 2\r\n\r\nok"],
])("a response with %s is a 502 with the reason phrase of a 502", async (_, wire) => {
  answer = (socket) => void socket.write(wire);
  const text = await rawExchange(server, head, /\}$/);
  expect(text).toMatch(/^HTTP\/1\.1 502 Bad Gateway\r\n/);
  expect(text).toContain('"internalCode":2005');
});

it.each(["100 Continue", "103 Early Hints"])("a provider that sends %s for ever is a 502", async (status) => {
  answer = (socket) => {
    const send = () => {
      while (socket.writable && socket.write(`HTTP/1.1 ${status}\r\n\r\n`));
    };
    socket.on("drain", send);
    send();
  };
  const text = await rawExchange(server, head, /\}$/);
  expect(text).toMatch(/^HTTP\/1\.1 502 Bad Gateway\r\n/);
});

it("a POST on a kept connection that dies is not repeated: the caller gets a 502", async () => {
  answer = (socket) => void socket.write(OK);
  await post(server, "openai/x", { body: "first" });
  answer = (socket, _, read) => void (read > 0 ? socket.resetAndDestroy() : socket.write(OK));
  const died = await post(server, "openai/x", { body: "charge" });
  expect(died.status).toBe(502);
  expect(died.headers["gw-aig-error-origin"]).toBe("gateway");
  expect(reads.filter((read) => read.endsWith("charge"))).toHaveLength(1);
  expect((await readLogs(server))[0]).toMatchObject({ status_code: 502, success: false, cost: 0 });
});

it.each([
  ["an idempotency key", { "idempotency-key": "k1" }],
  ["configured attempts", { "gw-aig-max-attempts": "2", "gw-aig-retry-delay": "0" }],
])("with %s the request is repeated", async (_, headers) => {
  answer = (socket) => void socket.write(OK);
  await post(server, "openai/x", { body: "first" });
  answer = (socket, __, read) => void (read > 0 ? socket.resetAndDestroy() : socket.write(OK));
  expect((await post(server, "openai/x", { body: "again", headers })).status).toBe(200);
  expect(reads.filter((read) => read.endsWith("again"))).toHaveLength(2);
});
