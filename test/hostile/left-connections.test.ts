/** Connections whose last response is written past node:http: they end with their clients, whatever those have sent. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type RealtimePeer, startRealtimePeer } from "../peers/realtime.ts";
import { setGateway } from "../support/gateway.ts";
import { RawSocket } from "../support/raw-socket.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const HANDSHAKE =
  "Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const KEY = /Sec-WebSocket-Key: .*\r\n/;

let peer: RealtimePeer;
let server: TestServer;
beforeAll(async () => {
  peer = await startRealtimePeer();
  peer.refuse = () => ({ status: 403, body: '{"error":"no"}' });
  server = await startTestServer({
    file: {
      providers: { openai: { baseUrl: `${peer.url}/v1` } },
      // Nothing is cut by the stop within the time of a test.
      listener: { gracePeriodMs: 600_000, maxConnections: 10 },
    },
  });
  const created = await server.api("POST", "/accounts/default/ai-gateway/gateways", { id: "closed" });
  expect(created.status).toBe(200);
  await setGateway(server, { authentication: true }, "closed");
});
afterAll(() => peer.close());

/** Sends a request, bytes behind its response that no one has asked for, and leaves. Returns the status. */
async function askAndLeave(request: string): Promise<number> {
  const raw = new RawSocket(server.url, { allowHalfOpen: true });
  raw.write(request);
  await raw.until("\r\n\r\n");
  raw.socket.end("123456");
  await raw.closed();
  return Number(raw.received.toString("latin1", 9, 12));
}

it.each([
  ["a handshake on a path without WebSockets", 404, `GET /nope HTTP/1.1\r\n${HANDSHAKE}`],
  ["a handshake on a path of the server", 404, `GET /healthz HTTP/1.1\r\n${HANDSHAKE}`],
  ["a handshake with bytes behind it", 404, `GET /nope HTTP/1.1\r\n${HANDSHAKE}early`],
  [
    "a malformed handshake at an agent",
    400,
    `GET /agents/webhook-agent/x HTTP/1.1\r\n${HANDSHAKE.replace(KEY, "")}`,
  ],
  ["a handshake with two hosts", 400, `GET /agents/webhook-agent/x HTTP/1.1\r\nHost: y\r\n${HANDSHAKE}`],
  [
    "a session without the token of its gateway",
    401,
    `GET /v1/default/closed/openai/realtime?model=m HTTP/1.1\r\n${HANDSHAKE}`,
  ],
  [
    "a session that the provider refuses",
    403,
    `GET /v1/default/default/openai/realtime?model=m HTTP/1.1\r\nAuthorization: Bearer sk-own\r\n${HANDSHAKE}`,
  ],
  ["CONNECT", 405, "CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n"],
  ["bytes that are not HTTP", 400, "nonsense\r\n\r\n"],
])(
  "the connection of %s ends with its client, so that there is room for others",
  async (_title, status, request) => {
    for (let i = 0; i < 20; i++) expect(await askAndLeave(request)).toBe(status);
  },
);

it("a client that stays after the refusal of its handshake is cut", async () => {
  const raw = new RawSocket(server.url, { allowHalfOpen: true });
  raw.write(`GET /nope HTTP/1.1\r\n${HANDSHAKE}`);
  await raw.until("\r\n\r\n");
  // A client learns of it when it writes.
  const isCut = () => {
    raw.write("x");
    return raw.isClosed;
  };
  await expect.poll(isCut).toBe(true);
});

it("the server stops after all of these", async () => {
  await server.stop();
});
