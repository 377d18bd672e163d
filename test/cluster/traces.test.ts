/** Traces over nodes: the turn of an instance belongs to the trace of its caller, whichever node the caller has reached. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type OtlpReceiver, startOtlpReceiver } from "../peers/otlp-receiver.ts";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { RawClient } from "../support/agents.ts";
import { startTestCluster, type TestCluster } from "../support/cluster.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { SECRET, sendGeneric } from "../support/webhook-sender.ts";
import { waitUntil } from "../support/wait-until.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";
const traceparent = `00-${TRACE}-${SPAN}-01`;

let receiver: OtlpReceiver;
let other: ProviderPeer;
let cluster: TestCluster;
beforeAll(async () => {
  receiver = await startOtlpReceiver();
  other = await startProvider((_, response) => sendJson(response, 200, {}));
  cluster = await startTestCluster({
    file: { agents: { modules: [join(import.meta.dirname, "../fixtures/tracing-agents.ts")] } },
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_BSP_SCHEDULE_DELAY: "50",
      WEBHOOK_SECRET: SECRET,
    },
  });
});
afterAll(async () => {
  await cluster.stop();
  await receiver.close();
  await other.close();
});

const turns = (name: string, count: number) =>
  waitUntil(
    () => receiver.spans.filter((span) => span.name === name),
    (all) => all.length >= count,
  );

it("calls, sockets and deliveries at both nodes are turns of the caller's trace", async () => {
  for (const { url } of cluster.nodes) {
    const response = await fetch(`${url}/agents/calling/a/rpc/work`, {
      method: "POST",
      headers: { traceparent, authorization: `Bearer ${ROOT_TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify([other.url]),
    });
    expect([response.status, await response.json()]).toMatchObject([200, { result: 200 }]);
    const client = await new RawClient(`${url}/agents/calling/a`, { headers: { traceparent } }).opened();
    client.send("hello");
    await turns("turn message calling", 1);
    client.socket.close();
    const delivery = { entity: "order-7", type: "paid" };
    expect((await sendGeneric(url, "github-events", delivery, { traceparent })).status).toBe(200);
  }
  for (const kind of ["rpc", "connect", "message"]) {
    const found = await turns(`turn ${kind} calling`, 2);
    expect(found.map(({ traceId, parentSpanId }) => [traceId, parentSpanId])).toEqual([
      [TRACE, SPAN],
      [TRACE, SPAN],
    ]);
  }
  const called = await turns("turn rpc called", 2);
  const calls = await turns("call called", 2);
  expect(called.map(({ traceId }) => traceId)).toEqual([TRACE, TRACE]);
  expect(called.map(({ parentSpanId }) => parentSpanId).sort()).toEqual(
    calls.map(({ spanId }) => spanId).sort(),
  );
  const deliveries = await waitUntil(
    () => receiver.spans.filter(({ name }) => name.startsWith("turn delivery")),
    (all) => all.length >= 2,
  );
  expect(deliveries.map(({ traceId }) => traceId)).toEqual([TRACE, TRACE]);
});
