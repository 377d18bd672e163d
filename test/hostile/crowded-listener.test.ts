/** A stranger takes every connection that the listener has and sends nothing, or next to nothing. Others are served all the same. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { request as secureRequest } from "node:https";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { callPath, CHAT, send } from "../support/gateway.ts";
import { RawSocket, rawWebSocket } from "../support/raw-socket.ts";
import { makeCertificate, type TestCertificate } from "../support/test-certificate.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

const PLACES = 64;
const HEALTH = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
/** No time limit ends a connection within the test. */
const NEVER_MS = 3_600_000;
const listener = {
  maxConnections: PLACES,
  headerTimeoutMs: NEVER_MS,
  bodyTimeoutMs: NEVER_MS,
  idleTimeoutMs: NEVER_MS,
};

let provider: ProviderPeer;
let server: TestServer;
let secure: TestServer;
let folder: string;
let certificate: TestCertificate;
const strangers: Socket[] = [];

beforeAll(async () => {
  provider = await startProvider(() => undefined);
  server = await startTestServer({ file: { providers: { openai: { baseUrl: provider.url } }, listener } });
  folder = mkdtempSync(join(tmpdir(), "signalbox-crowded-"));
  certificate = makeCertificate(folder, "first", "DNS:localhost");
  const environment = { SIGNALBOX_TLS_CERT: certificate.cert, SIGNALBOX_TLS_KEY: certificate.key };
  secure = await startTestServer({ environment, file: { listener } });
});
afterAll(async () => {
  await server.stop();
  await secure.stop();
  await provider.close();
  rmSync(folder, { recursive: true, force: true });
});
afterEach(() => {
  for (const socket of strangers.splice(0)) socket.destroy();
});

/** Opens twice as many connections as there are places, one after the other. */
async function crowd(url: string, sent: string): Promise<void> {
  const { port, hostname } = new URL(url);
  for (let i = 0; i < 2 * PLACES; i++) {
    const socket = connect(Number(port), hostname);
    socket.on("error", () => undefined);
    strangers.push(socket);
    await once(socket, "connect");
    if (sent === "") continue;
    socket.write(sent);
    if (sent === HEALTH) await Promise.race([once(socket, "data"), once(socket, "close")]);
  }
}

async function healthOnNewConnection(url: string): Promise<number> {
  const raw = new RawSocket(url);
  raw.write(HEALTH);
  await raw.until("\r\n\r\n");
  raw.destroy();
  return Number(raw.received.toString("latin1", 9, 12));
}

it.each([
  ["that send nothing", ""],
  ["that begin a request", "GET /healthz HTTP/1.1\r\nHost: "],
  ["that begin a request of another kind", "POST /v1/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "],
  ["that had their answer and stay", HEALTH],
])("connections %s make room for others", async (_title, sent) => {
  await crowd(server.url, sent);
  for (let i = 0; i < 5; i++) expect(await healthOnNewConnection(server.url)).toBe(200);
});

it.each([
  ["of a known length", "Content-Length: 100000\r\n\r\n{"],
  ["of unknown length", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"],
])("bodies %s that hardly arrive make room for others", async (_title, rest) => {
  const request = `POST /webhooks/generic HTTP/1.1\r\nHost: x\r\n${rest}`;
  await crowd(server.url, request);
  // They count as slow after a second.
  await expect.poll(() => healthOnNewConnection(server.url).catch(() => 0), { interval: 100 }).toBe(200);
  for (let i = 0; i < 5; i++) expect(await healthOnNewConnection(server.url)).toBe(200);
});

it("clients that do not read their responses make room for others", async () => {
  // Together they are larger than what the system takes for a client that does not read.
  const ask = "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(40);
  const { port, hostname } = new URL(server.url);
  for (let i = 0; i < 2 * PLACES; i++) {
    const socket = connect(Number(port), hostname);
    socket.on("error", () => undefined);
    socket.pause();
    strangers.push(socket);
    await once(socket, "connect");
    socket.write(ask);
  }
  const isServed = () =>
    healthOnNewConnection(server.url).then(
      (status) => status === 200,
      () => false,
    );
  await expect.poll(isServed, { interval: 100 }).toBe(true);
  for (let i = 0; i < 5; i++) expect(await isServed()).toBe(true);
});

it("calls and WebSockets keep their connections", async () => {
  let answer = (): void => undefined;
  const mayAnswer = new Promise<void>((resolve) => (answer = resolve));
  provider.answer = (_, response) => void mayAnswer.then(() => sendJson(response, 200, { ok: true }));
  const call = () =>
    send(server, "POST", callPath("openai/chat/completions"), {
      body: CHAT,
      headers: { authorization: "Bearer sk-own", "content-type": "application/json" },
    });
  const calls = Array.from({ length: 8 }, call);
  await expect.poll(() => provider.requests.length).toBe(calls.length);
  const webSocket = await rawWebSocket(server.url, "/agents/webhook-agent/one", {
    authorization: `Bearer ${ROOT_TOKEN}`,
  });
  await crowd(server.url, "");
  expect(webSocket.isClosed).toBe(false);
  answer();
  for (const { status } of await Promise.all(calls)) expect(status).toBe(200);
  webSocket.destroy();
});

it("TLS handshakes that do not end make room for others", async () => {
  await crowd(secure.url, "");
  const request = secureRequest(`${secure.url}/healthz`, {
    ca: certificate.pem,
    servername: "localhost",
    agent: false,
  });
  request.end();
  const [response] = (await once(request, "response")) as [{ statusCode: number; resume(): void }];
  response.resume();
  expect(response.statusCode).toBe(200);
});
