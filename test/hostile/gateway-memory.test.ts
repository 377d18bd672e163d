/** Bodies of calls stay within the memory budget for any number of callers, and their memory is released. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { callPath, CHAT, post, readLogs } from "../support/gateway.ts";
import { readMetric } from "../support/read-metric.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const BUDGET = 1024 * 1024;
const SENT = 200 * 1024;

let provider: ProviderPeer;
/** Cuts off stalled bodies soon. */
let server: TestServer;
/** Longer than any test, so that no timeout interferes. */
let patient: TestServer;
const sockets: Socket[] = [];
beforeAll(async () => {
  provider = await startProvider((_, response) => sendJson(response, 200, { ok: true }));
  const providers = { openai: { baseUrl: provider.url } };
  const start = (uploadStallMs: number) =>
    startTestServer({ file: { providers, gateway: { maxBufferedBytes: BUDGET, uploadStallMs } } });
  [server, patient] = await Promise.all([start(300), start(600_000)]);
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await expect.poll(() => bufferedBytes(server)).toBe(0);
  await expect.poll(() => bufferedBytes(patient)).toBe(0);
});
afterAll(async () => {
  await server.stop();
  await patient.stop();
  await provider.close();
});

const bufferedBytes = (of: TestServer) => readMetric(of, "signalbox_gateway_buffered_bytes");

interface RawCall {
  readonly socket: Socket;
  answer: string;
}

/** Sends a request's head and the first part of its body, and keeps the connection open. */
async function begin(of: TestServer, framing: string, body: Buffer | string): Promise<RawCall> {
  const socket = connect(Number(new URL(of.url).port), "127.0.0.1");
  const call: RawCall = { socket, answer: "" };
  sockets.push(socket);
  socket.on("error", () => undefined);
  socket.setEncoding("latin1").on("data", (text: string) => (call.answer += text));
  await once(socket, "connect");
  socket.write(
    `POST ${callPath("openai/files")} HTTP/1.1\r\nhost: x\r\ncontent-type: text/plain\r\n${framing}\r\n\r\n`,
  );
  socket.write(body);
  return call;
}

it("bodies beyond the budget are refused with 503 and Retry-After while other callers hold it", async () => {
  // At once: those that have sent nothing for two seconds make room for others.
  const calls = await Promise.all(
    Array.from({ length: 12 }, () => begin(patient, `content-length: ${SENT + 10}`, Buffer.alloc(SENT))),
  );
  const refused = () => calls.filter(({ answer }) => answer.startsWith("HTTP/1.1 503 "));
  await expect.poll(() => refused().length).toBeGreaterThanOrEqual(7);
  expect(await bufferedBytes(patient)).toBeLessThanOrEqual(BUDGET);
  for (const { answer } of refused()) {
    expect(answer).toMatch(/\r\nretry-after: \d+\r\n/);
    expect(answer).toContain('"name":"AiGatewayError"');
    expect(answer).toContain('"internalCode":7008');
  }
  const kept = calls.filter(({ answer }) => answer === "");
  expect(kept.length).toBeGreaterThanOrEqual(3);
  // Admitted calls can finish.
  for (const { socket } of kept) socket.write(Buffer.alloc(10));
  await expect.poll(() => kept.every(({ answer }) => answer.startsWith("HTTP/1.1 200 "))).toBe(true);
});

it("small calls are admitted while stalled bodies fill the budget", async () => {
  for (let i = 0; i < 8; i++) await begin(patient, `content-length: ${SENT + 10}`, Buffer.alloc(SENT));
  await expect.poll(() => bufferedBytes(patient)).toBeGreaterThan(BUDGET / 2);
  const large = CHAT.replace("Hello", "x".repeat(SENT));
  await expect
    .poll(async () => (await post(patient, "openai/chat/completions", { body: large })).status)
    .toBe(200);
});

it("stalled bodies are cut off with 408 and their memory is released", async () => {
  const whole = await begin(server, `content-length: ${SENT + 10}`, Buffer.alloc(SENT));
  const chunked = await begin(server, "transfer-encoding: chunked", "5\r\nhello\r\n");
  await expect.poll(() => whole.answer).toContain("HTTP/1.1 408 ");
  await expect.poll(() => chunked.answer).toContain("HTTP/1.1 408 ");
  expect(whole.answer).toContain('"internalCode":7007');
  expect(whole.answer).toMatch(/\r\nconnection: close\r\n/i);
  await expect.poll(() => bufferedBytes(server)).toBe(0);
});

it.each([
  ["a declared length", (body: Buffer) => `content-length: ${body.length}`],
  ["chunks", () => "transfer-encoding: chunked"],
])("a body in many pieces is forwarded unchanged with %s", async (kind, framing) => {
  const body = Buffer.from(Array.from({ length: 30_000 }, (_, i) => `${i},`).join(""));
  const sizes = [1, 5000, 1, 3, 60_000, 17];
  const call = await begin(patient, framing(body), "");
  let at = 0;
  for (let i = 0; at < body.length; i++) {
    const piece = body.subarray(at, at + (sizes[i % sizes.length] ?? 1));
    call.socket.write(kind === "chunks" ? `${piece.length.toString(16)}\r\n${piece.toString()}\r\n` : piece);
    at += piece.length;
    // Lets the other side read before the next piece is sent.
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (kind === "chunks") call.socket.write("0\r\n\r\n");
  await expect.poll(() => call.answer).toContain("HTTP/1.1 200 ");
  expect(provider.requests.at(-1)?.body).toBe(body.toString());
});

it("the overhead of pieces is counted as well as their bytes", async () => {
  const call = await begin(patient, "transfer-encoding: chunked", "1\r\nx\r\n".repeat(10_000));
  await expect.poll(() => call.answer).toContain("HTTP/1.1 503 ");
  await expect.poll(() => bufferedBytes(patient)).toBe(0);
});

it("a body counts until its call has ended, and not after its caller disconnected", async () => {
  const { promise: arrived, resolve } = Promise.withResolvers<void>();
  provider.answer = () => resolve();
  const call = await begin(patient, `content-length: ${SENT}`, Buffer.alloc(SENT));
  await arrived;
  await expect.poll(() => bufferedBytes(patient)).toBeGreaterThanOrEqual(SENT);
  call.socket.destroy();
  await expect.poll(() => bufferedBytes(patient)).toBe(0);
  provider.answer = (_, response) => sendJson(response, 200, { ok: true });
});

it("a body larger than its share is streamed instead of refused", async () => {
  const body = Buffer.alloc(3 * BUDGET, "x");
  const answer = await post(patient, "openai/files", { body, headers: { "content-type": "text/plain" } });
  expect(answer.status).toBe(200);
  expect(provider.requests.at(-1)?.body).toHaveLength(body.length);
});

it("a response without room to be stored is forwarded, and its stored body is marked as truncated", async () => {
  const piece = "y".repeat(100 * 1024);
  provider.answer = async (_, response) => {
    response.writeHead(200, { "content-type": "text/plain" });
    for (let i = 0; i < 20; i++) {
      response.write(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
    response.end();
  };
  const answer = await post(patient, "openai/files");
  expect(answer.body).toHaveLength(20 * piece.length);
  const [row] = await readLogs(patient);
  const stored = await fetch(
    `${patient.url}/accounts/default/ai-gateway/gateways/default/logs/${String(row?.["id"])}/response`,
    { headers: { authorization: "Bearer root-token-of-the-test-server" } },
  );
  expect(stored.headers.get("gw-aig-body-complete")).toBe("false");
  expect((await stored.text()).length).toBeLessThanOrEqual(BUDGET / 2);
});

it("the echo provider streams a long conversation in few events", async () => {
  const body = JSON.stringify({
    model: "echo",
    stream: true,
    messages: [{ role: "user", content: "a ".repeat(50_000) }],
  });
  const answer = await post(patient, "echo/chat/completions", { body });
  const events = answer.body.split("\n\n").filter((event) => event.startsWith("data: {"));
  expect(events.length).toBeLessThan(1100);
  const text = events
    .map((event) => JSON.parse(event.slice(6)) as { choices: { delta: { content?: string } }[] })
    .map(({ choices }) => choices[0]?.delta.content ?? "")
    .join("");
  expect(text).toBe("a ".repeat(50_000));
});
