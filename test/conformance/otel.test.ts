/**
 * OpenTelemetry: what a receiver gets, compared with the published conventions, and what happens when it does not take it.
 *
 * The receiver is a peer of ours: neither Debian nor npm has a collector, and Debian's Prometheus is too old to receive OTLP. Its protobuf decoder
 * is written from the published messages and shares no code with the sender.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type OtlpReceiver, startOtlpReceiver } from "../peers/otlp-receiver.ts";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { CHAT, post, setGateway } from "../support/gateway.ts";
import { readMetric } from "../support/read-metric.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { SECRET, sendGeneric } from "../support/webhook-sender.ts";
import { waitUntil } from "../support/wait-until.ts";

/** Names in the registry of the conventions for generative AI (as of August 2026) that a gateway may use; only the last one is ours. */
const PUBLISHED = new Set([
  "gen_ai.operation.name",
  "gen_ai.provider.name",
  "gen_ai.request.model",
  "gen_ai.response.model",
  "gen_ai.response.id",
  "gen_ai.response.finish_reasons",
  "gen_ai.response.time_to_first_chunk",
  "gen_ai.usage.input_tokens",
  "gen_ai.usage.output_tokens",
  "gen_ai.usage.cache_read.input_tokens",
  "gen_ai.usage.cache_creation.input_tokens",
  "gen_ai.usage.reasoning.output_tokens",
  "gen_ai.conversation.id",
  "gen_ai.input.messages",
  "gen_ai.output.messages",
  "gen_ai.usage.cost",
]);
const ANSWER = {
  id: "chatcmpl-7",
  model: "gpt-4o-mini-2024-07-18",
  choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 4 } },
};
const CALLER = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };

let receiver: OtlpReceiver;
let provider: ProviderPeer;
beforeAll(async () => {
  receiver = await startOtlpReceiver();
  provider = await startProvider((_, response) => sendJson(response, 200, ANSWER));
});
afterAll(async () => {
  await receiver.close();
  await provider.close();
});
beforeEach(() => {
  receiver.spans.length = 0;
  receiver.points.length = 0;
  receiver.requests.length = 0;
  receiver.status = 200;
  provider.requests.length = 0;
  provider.answer = (_, response) => sendJson(response, 200, ANSWER);
});

const start = (environment: Record<string, string> = {}) =>
  startTestServer({
    file: { providers: { openai: { baseUrl: provider.url } }, outgoing: { allowPrivateHosts: true } },
    environment: {
      WEBHOOK_SECRET: SECRET,
      OTEL_BSP_SCHEDULE_DELAY: "50",
      OTEL_METRIC_EXPORT_INTERVAL: "100",
      ...environment,
    },
  });
const spans = (count: number) =>
  waitUntil(
    () => receiver.spans,
    (all) => all.length >= count,
  );
const call = (server: TestServer, headers: Record<string, string> = {}) =>
  post(server, "openai/chat/completions", { headers: { authorization: "Bearer sk", ...headers } });

describe.each([
  ["http/protobuf", "gzip", "application/x-protobuf"],
  ["http/json", "none", "application/json"],
])("the whole service, %s, %s", (protocol, compression, type) => {
  it("sends a span a call with a child an attempt, and metrics, with the names of the conventions", async () => {
    const server = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: `${receiver.url}/`,
      OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
      OTEL_EXPORTER_OTLP_COMPRESSION: compression,
      OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=team%20a",
      OTEL_SERVICE_NAME: "gateway-7",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
    });
    const before = BigInt(Date.now()) * 1_000_000n;
    await call(server, {
      traceparent: `00-${CALLER.traceId}-${CALLER.spanId}-01`,
      "gw-aig-metadata": '{"team":"a","beta":true}',
      "gw-aig-session-id": "conversation-1",
    });
    const [span, attempt] = await spans(2);
    expect(span).toMatchObject({
      name: "chat gpt-4o-mini",
      kind: 3,
      traceId: CALLER.traceId,
      parentSpanId: CALLER.spanId,
      status: 0,
      resource: { "service.name": "gateway-7", "deployment.environment.name": "test" },
    });
    expect(span?.attributes).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "openai",
      "gen_ai.request.model": "gpt-4o-mini",
      "gen_ai.response.id": "chatcmpl-7",
      "gen_ai.response.finish_reasons": ["stop"],
      "gen_ai.usage.input_tokens": 10,
      "gen_ai.usage.output_tokens": 5,
      "gen_ai.usage.cache_read.input_tokens": 4,
      "gen_ai.conversation.id": "conversation-1",
      "server.address": "127.0.0.1",
      "server.port": provider.port,
      "signalbox.metadata.team": "a",
      "signalbox.metadata.beta": true,
    });
    expect(span?.attributes["gen_ai.usage.cost"]).toBeGreaterThan(0);
    const unknown = Object.keys(span?.attributes ?? {}).filter(
      (name) => name.startsWith("gen_ai.") && !PUBLISHED.has(name),
    );
    expect(unknown).toEqual([]);
    expect(JSON.stringify(span?.attributes)).not.toContain("Hello");
    expect((span?.startTimeUnixNano ?? 0n) >= before - 1_000_000_000n).toBe(true);
    expect((span?.endTimeUnixNano ?? 0n) >= (span?.startTimeUnixNano ?? 0n)).toBe(true);
    expect(attempt).toMatchObject({
      parentSpanId: span?.spanId,
      traceId: CALLER.traceId,
      name: "attempt openai",
    });
    expect(provider.requests[0]?.headers["traceparent"]).toBe(`00-${CALLER.traceId}-${span?.spanId}-01`);
    const points = await waitUntil(
      () => receiver.points,
      (all) => all.length >= 3,
    );
    const tokens = points.filter(({ metric }) => metric === "gen_ai.client.token.usage");
    expect(tokens.find(({ attributes }) => attributes["gen_ai.token.type"] === "input")).toMatchObject({
      unit: "{token}",
      sum: 10,
      count: 1n,
      attributes: {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o-mini",
      },
      explicitBounds: [
        1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864,
      ],
      bucketCounts: [0n, 0n, 1n, 0n, 0n, 0n, 0n, 0n, 0n, 0n, 0n, 0n, 0n, 0n, 0n],
    });
    expect(points.find(({ metric }) => metric === "gen_ai.client.operation.duration")).toMatchObject({
      unit: "s",
      count: 1n,
    });
    for (const { headers } of receiver.requests)
      expect(headers).toMatchObject({ "content-type": type, "x-tenant": "team a" });
    await server.stop();
  });
});

describe("one service with an endpoint", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await start({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/custom` });
  });
  afterAll(() => server.stop());

  it("each attempt has its own span, failed ones with their cause", async () => {
    let count = 0;
    provider.answer = (_, response) => sendJson(response, (count += 1) === 1 ? 503 : 200, ANSWER);
    await call(server, { "gw-aig-max-attempts": "2", "gw-aig-retry-delay": "1" });
    const [span, first, second] = await spans(3);
    expect(first?.attributes).toMatchObject({ "error.type": "503", "http.response.status_code": 503 });
    expect(first?.status).toBe(2);
    expect(second?.attributes).toMatchObject({
      "http.request.resend_count": 1,
      "http.response.status_code": 200,
    });
    expect([first?.parentSpanId, second?.parentSpanId]).toEqual([span?.spanId, span?.spanId]);
    expect(span?.parentSpanId).toBe("");
  });

  it("an error has error.type and the status of an error", async () => {
    provider.answer = (_, response) => sendJson(response, 400, { error: { message: "no" } });
    await call(server);
    const [span] = await spans(1);
    expect(span).toMatchObject({
      status: 2,
      attributes: { "error.type": "400", "http.response.status_code": 400 },
    });
    expect(span?.attributes).not.toHaveProperty("gen_ai.usage.input_tokens");
  });

  it("a trace that its caller does not record is not recorded here", async () => {
    await call(server, { traceparent: `00-${CALLER.traceId}-${CALLER.spanId}-00` });
    await call(server, { traceparent: `00-${CALLER.traceId}-b7ad6b7169203332-01` });
    const [span] = await spans(1);
    expect(span?.parentSpanId).toBe("b7ad6b7169203332");
  });

  it("takes the headers of the hosted original for trace and parent", async () => {
    await call(server, {
      "cf-aig-otel-trace-id": CALLER.traceId,
      "cf-aig-otel-parent-span-id": CALLER.spanId,
    });
    const [span] = await spans(1);
    expect(span).toMatchObject({ traceId: CALLER.traceId, parentSpanId: CALLER.spanId });
    expect((await call(server, { "cf-aig-otel-trace-id": "0".repeat(32) })).status).toBe(400);
  });

  it("a webhook delivery has a span in its sender's trace, its turn one below it, and its SQL one below that", async () => {
    const answer = await sendGeneric(
      server.url,
      "github-events",
      { entity: "order-7", type: "paid" },
      { traceparent: `00-${CALLER.traceId}-${CALLER.spanId}-01` },
    );
    expect(answer.status).toBe(200);
    const all = await waitUntil(
      () => receiver.spans,
      (found) =>
        found.some(({ name }) => name.startsWith("turn delivery")) &&
        found.some(({ name }) => name === "webhook generic"),
    );
    const delivery = all.find(({ name }) => name === "webhook generic");
    const turn = all.find(({ name }) => name.startsWith("turn delivery"));
    const statement = all.find(({ parentSpanId }) => parentSpanId === turn?.spanId);
    expect(delivery).toMatchObject({ traceId: CALLER.traceId, parentSpanId: CALLER.spanId, kind: 2 });
    expect(turn).toMatchObject({ traceId: CALLER.traceId, parentSpanId: delivery?.spanId });
    expect(statement).toMatchObject({ traceId: CALLER.traceId, attributes: { "db.system.name": "sqlite" } });
  });

  it("counts what a receiver refuses as dropped, and serves calls all the same", async () => {
    receiver.status = 400;
    // Not all spans: those of the test before may be counted as sent only now.
    const dropped = async () =>
      (await readMetric(server, 'signalbox_otel_spans_total{outcome="dropped"}')) || 0;
    const before = await dropped();
    expect((await call(server)).status).toBe(200);
    expect(await waitUntil(dropped, (value) => value >= before + 2)).toBeGreaterThanOrEqual(2);
    expect(receiver.requests.every(({ url }) => url === "/custom")).toBe(true);
  });
});

describe("one gateway", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await start();
  });
  afterAll(() => server.stop());

  it("sends its spans to its own receivers, with content only when asked, and hides their credentials", async () => {
    const otel = [
      {
        url: `${receiver.url}/v1/traces`,
        headers: { "x-key": "secret-1" },
        authorization: "Bearer secret-2",
        content_type: "protobuf",
      },
    ];
    await setGateway(server, { otel });
    await call(server);
    const [span] = await waitUntil(
      () => receiver.spans,
      (all) => all.length >= 2,
      50,
    );
    expect(span?.attributes).not.toHaveProperty("gen_ai.input.messages");
    expect(receiver.requests[0]?.headers).toMatchObject({
      "x-key": "secret-1",
      authorization: "Bearer secret-2",
    });
    const { body } = await server.api("GET", "/accounts/default/ai-gateway/gateways/default");
    const { result } = body as { result: Record<string, unknown> };
    expect(result["otel"]).toEqual([
      {
        url: `${receiver.url}/v1/traces`,
        headers: { "x-key": "[secret]" },
        authorization: "[secret]",
        content_type: "protobuf",
      },
    ]);
    await setGateway(server, { otel: result["otel"], otel_content: true });
    receiver.spans.length = 0;
    receiver.requests.length = 0;
    await call(server);
    const [second] = await waitUntil(
      () => receiver.spans,
      (all) => all.length >= 2,
      50,
    );
    expect(receiver.requests[0]?.headers).toMatchObject({ authorization: "Bearer secret-2" });
    expect(JSON.parse(String(second?.attributes["gen_ai.input.messages"]))).toEqual([
      { role: "user", parts: [{ type: "text", content: "Hello" }] },
    ]);
    expect(JSON.parse(String(second?.attributes["gen_ai.output.messages"]))).toEqual([
      { role: "assistant", parts: [{ type: "text", content: "Hi" }] },
    ]);
    expect(CHAT).toContain("Hello");
    const guardrails = "/accounts/default/ai-gateway/gateways/default/guardrails";
    const rule = { id: "greetings", type: "words", words: ["Hello"], action: "flag", logs: "masked" };
    await server.api("PUT", guardrails, { rules: [rule] });
    receiver.spans.length = 0;
    await call(server);
    const [third] = await waitUntil(
      () => receiver.spans,
      (all) => all.length >= 2,
      50,
    );
    expect(third?.attributes).toMatchObject({
      "signalbox.guardrail.action": "flag",
      "signalbox.guardrail.decisions": ["gateway/greetings:prompt:flag"],
    });
    expect(JSON.stringify(third?.attributes)).not.toContain("Hello");
    expect(third?.attributes["gen_ai.input.messages"]).toContain("<GREETINGS_1>");
    expect(await readMetric(server, "signalbox_gateway_guardrail_findings_total")).toBe(1);
    await server.api("PUT", guardrails, { rules: [] });
    await setGateway(server, { otel: null });
    receiver.spans.length = 0;
    await call(server);
    const moved = await server.api("PUT", "/accounts/default/ai-gateway/gateways/default", {
      otel: [{ url: `${receiver.url}/elsewhere`, authorization: "[secret]" }],
    });
    expect(moved.status).toBe(400);
  });

  it("refuses private addresses unless the operator allows them", async () => {
    const strict = await startTestServer();
    for (const url of [
      "http://127.0.0.1:4318/v1/traces",
      "http://localhost/v1/traces",
      "ftp://example.com",
    ]) {
      const { status } = await strict.api("PUT", "/accounts/default/ai-gateway/gateways/default", {
        otel: [{ url }],
      });
      expect([url, status]).toEqual([url, 400]);
    }
    await strict.stop();
  });
});

it.each([
  ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"],
  ["OTEL_TRACES_SAMPLER", "sometimes"],
  ["OTEL_BSP_MAX_QUEUE_SIZE", "-1"],
])("a service does not start with %s=%s", async (name, value) => {
  await expect(start({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, [name]: value })).rejects.toThrow(name);
});
