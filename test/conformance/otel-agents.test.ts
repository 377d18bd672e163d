/** OpenTelemetry of agents: turns that requests, calls and WebSockets cause are part of the caller's trace, and so is what the turns call. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { join } from "node:path";
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from "../peers/otlp-receiver.ts";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { RawClient } from "../support/agents.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";
const traceparent = `00-${TRACE}-${SPAN}-01`;
const SERVER = 2;

let receiver: OtlpReceiver;
let other: ProviderPeer;
let server: TestServer;
beforeAll(async () => {
  receiver = await startOtlpReceiver();
  other = await startProvider((_, response) => sendJson(response, 200, {}));
  server = await startTestServer({
    file: { agents: { modules: [join(import.meta.dirname, "../fixtures/tracing-agents.ts")] } },
    environment: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_BSP_SCHEDULE_DELAY: "50" },
  });
});
afterAll(async () => {
  await server.stop();
  await receiver.close();
  await other.close();
});
beforeEach(() => {
  receiver.spans.length = 0;
});

const send = (path: string, body?: unknown) =>
  fetch(`${server.url}/agents/${path}`, {
    method: "POST",
    headers: { traceparent, authorization: `Bearer ${ROOT_TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify(body ?? null),
  });
const spansWith = async (fits: (span: ReceivedSpan) => boolean) =>
  (
    await waitUntil(
      () => receiver.spans,
      (all) => all.some(fits),
    )
  ).find(fits);

it("a request is a turn of the caller's trace", async () => {
  expect((await send("calling/a")).status).toBe(200);
  const turn = await spansWith(({ name }) => name === "turn request calling");
  expect(turn).toMatchObject({ traceId: TRACE, parentSpanId: SPAN, kind: SERVER });
});

it("a method call is a turn of the caller's trace; the agent that it calls and the address that it fetches continue it", async () => {
  const answer = await send("calling/a/rpc/work", [`${other.url}/path?key=a-secret-key`]);
  expect([answer.status, await answer.json()]).toMatchObject([200, { result: 200 }]);
  const turn = await spansWith(({ name }) => name === "turn rpc calling");
  expect(turn).toMatchObject({ traceId: TRACE, parentSpanId: SPAN, kind: SERVER });
  const call = await spansWith(({ name }) => name === "call called");
  expect(call).toMatchObject({ traceId: TRACE, parentSpanId: turn?.spanId });
  const called = await spansWith(({ name }) => name === "turn rpc called");
  expect(called).toMatchObject({ traceId: TRACE, parentSpanId: call?.spanId });
  const statement = await spansWith(({ name }) => name === "CREATE");
  expect(statement).toMatchObject({ traceId: TRACE, parentSpanId: called?.spanId });
  const outgoing = await spansWith(({ name }) => name === "fetch");
  expect(outgoing).toMatchObject({ traceId: TRACE, parentSpanId: turn?.spanId });
  // A query may contain credentials.
  expect(outgoing?.attributes).toMatchObject({ "url.full": `${other.url}/path` });
  expect(other.requests.at(-1)?.headers["traceparent"]).toBe(`00-${TRACE}-${outgoing?.spanId}-01`);
});

it("the turns of a WebSocket belong to the trace of its handshake", async () => {
  const client = await new RawClient(`${server.url}/agents/calling/b`, { headers: { traceparent } }).opened();
  client.send("hello");
  for (const kind of ["connect", "message"]) {
    const turn = await spansWith(({ name }) => name === `turn ${kind} calling`);
    expect(turn).toMatchObject({ traceId: TRACE, parentSpanId: SPAN, kind: SERVER });
  }
  client.socket.close();
});

it("a caller that is not traced gets a trace of its own for each turn, and malformed context is ignored", async () => {
  const client = await new RawClient(`${server.url}/agents/calling/c`, {
    headers: { traceparent: "00-nonsense" },
  }).opened();
  client.send("hello");
  const connect = await spansWith(({ name }) => name === "turn connect calling");
  const message = await spansWith(({ name }) => name === "turn message calling");
  expect(connect?.parentSpanId).toBe("");
  expect(message?.parentSpanId).toBe("");
  expect(message?.traceId).not.toBe(connect?.traceId);
  client.socket.close();
});
