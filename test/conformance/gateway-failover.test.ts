/**
 * The sixteen faults of the public failover catalogue (S01 to S16), each through the universal endpoint with one fallback: the client gets the
 * whole answer, or for S13 the provider's refusal, and the provider sees no needless attempt. The same settings for all of them, but for the length
 * of the limits.
 */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { ANSWER, type FaultyProvider, startFaultyProvider } from "../peers/faulty-provider.ts";
import { type ChatResult, streamChat } from "../support/chat-stream.ts";
import { readLogs } from "../support/gateway.ts";
import { readMetric } from "../support/read-metric.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let provider: FaultyProvider;
let server: TestServer;
let now = Date.now();
beforeAll(async () => {
  provider = await startFaultyProvider();
  server = await startTestServer({
    steadyClock: { now: () => now },
    file: { providers: { openai: { baseUrl: provider.url }, groq: { baseUrl: provider.url } } },
  });
});
afterAll(async () => {
  await server.stop();
  await provider.close();
});
beforeEach(async () => {
  provider.reset();
  await server.api("DELETE", "/accounts/default/ai-gateway/gateways/default/circuits");
});

/** Two retries, limits for silence, and answers that are held until they are whole. */
const SETTINGS = {
  "gw-aig-max-attempts": "3",
  "gw-aig-retry-delay": "20",
  "gw-aig-backoff": "exponential",
  "gw-aig-request-timeout": "600000",
  "gw-aig-first-token-timeout": "600000",
  "gw-aig-stall-timeout": "600000",
  "gw-aig-hold-response": "true",
};
/** For providers that are silent. With such limits a pause of the machine would be a silence of the others, too. */
const IMPATIENT = {
  ...SETTINGS,
  "gw-aig-request-timeout": "3000",
  "gw-aig-first-token-timeout": "3000",
  "gw-aig-stall-timeout": "3000",
};

const call = (
  model: string,
  fallback = "ok",
  headers: Record<string, string> = SETTINGS,
): Promise<ChatResult> =>
  streamChat(
    server,
    [
      { provider: "openai", model },
      { provider: "groq", model: fallback },
    ],
    headers,
  );

const attempts = (model: string) => provider.seen.filter((seen) => seen.model === model);

const WHOLE = { isAnswered: true, status: 200, content: ANSWER };

it("S01: a 429 with Retry-After is tried again after that time", async () => {
  expect(await call("limit-once")).toMatchObject({ ...WHOLE, model: "limit-once" });
  const [first, second, ...more] = attempts("limit-once");
  expect(more).toEqual([]);
  // Timers of Node.js may fire a millisecond early.
  expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(998);
  expect(attempts("ok")).toHaveLength(0);
});

it("S02: a lasting 429 is tried three times, then the fallback answers", async () => {
  expect(await call("limit")).toMatchObject({ ...WHOLE, model: "ok" });
  expect(attempts("limit")).toHaveLength(3);
});

it("S03: a single 500 is tried again on the same provider", async () => {
  expect(await call("error-once")).toMatchObject({ ...WHOLE, model: "error-once" });
  expect(attempts("error-once")).toHaveLength(2);
  expect(attempts("ok")).toHaveLength(0);
});

it("S04: a lasting 503 goes to the fallback within the attempts", async () => {
  expect(await call("overloaded")).toMatchObject({ ...WHOLE, model: "ok" });
  expect(attempts("overloaded")).toHaveLength(3);
});

it("S05: a connection that is reset before the response is answered all the same", async () => {
  expect(await call("reset-once")).toMatchObject(WHOLE);
});

it("S06: a provider that never answers is not tried again; the fallback answers", async () => {
  expect(await call("silent", "ok", IMPATIENT)).toMatchObject({ ...WHOLE, model: "ok" });
  expect(attempts("silent")).toHaveLength(1);
});

it("S07: a slow first token goes to the fallback before any byte reached the client", async () => {
  expect(await call("slow-first-token", "ok", IMPATIENT)).toMatchObject({ ...WHOLE, model: "ok" });
  expect(attempts("slow-first-token")).toHaveLength(1);
});

it("S08: a stream that is cut in the middle is replaced by a whole answer", async () => {
  expect(await call("cut")).toMatchObject(WHOLE);
  expect(attempts("ok")).toHaveLength(1);
});

it("S09: a stream that stalls in the middle is replaced by a whole answer, and the gateway works afterwards", async () => {
  expect(await call("stall", "ok", IMPATIENT)).toMatchObject({ ...WHOLE, model: "ok" });
  expect(attempts("stall")).toHaveLength(1);
  expect(await call("ok")).toMatchObject(WHOLE);
});

it("S10: an invalid event in the middle does not end the stream", async () => {
  expect(await call("malformed")).toMatchObject({ ...WHOLE, model: "malformed" });
  expect(await call("ok")).toMatchObject(WHOLE);
});

it("S11: a stream without [DONE] ends with its body, and its usage arrives", async () => {
  expect(await call("no-done")).toMatchObject({ ...WHOLE, usage: { completion_tokens: 60 } });
  expect(attempts("ok")).toHaveLength(0);
});

it("S12: a context that is too long is not sent to the same model again; the fallback answers", async () => {
  expect(await call("context-length")).toMatchObject({ ...WHOLE, model: "ok" });
  expect(attempts("context-length")).toHaveLength(1);
});

it("S13: a rejection of the content is passed on, and neither repeated nor routed around", async () => {
  expect(await call("content-filter")).toMatchObject({ status: 400, error: "content_policy_violation" });
  expect(attempts("content-filter")).toHaveLength(1);
  expect(attempts("ok")).toHaveLength(0);
});

it("S14: after a cut the fallback gets the caller's request, without the partial answer", async () => {
  expect(await call("cut", "no-prefill")).toMatchObject({ ...WHOLE, model: "no-prefill" });
  expect(attempts("no-prefill").map(({ lastRole }) => lastRole)).toEqual(["user"]);
});

it("S15: while a provider is down the fallback answers without waiting for it, and the provider is used again when it works", async () => {
  provider.isDown = true;
  for (let i = 0; i < 15; i++) {
    expect(await call("flap")).toMatchObject({ ...WHOLE, model: "ok" });
    now += 4000;
  }
  // Five failures open the circuit; within the minute one probe follows.
  expect(attempts("flap")).toHaveLength(6);
  const { body } = await server.api("GET", "/accounts/default/ai-gateway/gateways/default/circuits");
  expect(body).toMatchObject({ result: [{ provider: "openai", model: "flap", state: "open" }] });
  expect(await readMetric(server, 'signalbox_gateway_circuits{state="open"}')).toBe(1);
  expect(await readMetric(server, "signalbox_gateway_circuits_opened_total")).toBeGreaterThanOrEqual(1);
  provider.isDown = false;
  now += 30_000;
  expect(await call("flap")).toMatchObject({ ...WHOLE, model: "flap" });
  expect(await call("flap")).toMatchObject({ ...WHOLE, model: "flap" });
  const after = await server.api("GET", "/accounts/default/ai-gateway/gateways/default/circuits");
  expect(after.body).toMatchObject({ result: [] });
});

it("S16: the response and the log name the fallback and its usage, and one call is counted", async () => {
  const before = (await readLogs(server)).length;
  const answer = await call("overloaded");
  expect(answer).toMatchObject({ ...WHOLE, model: "ok", usage: { total_tokens: 69 } });
  expect(answer.headers["gw-aig-step"]).toBe("1");
  const rows = await readLogs(server);
  expect(rows.length).toBe(Math.min(50, before + 1));
  expect(rows[0]).toMatchObject({
    provider: "groq",
    model: "ok",
    tokens_in: 9,
    tokens_out: 60,
    success: true,
  });
});

it("without hold-response a cut stream ends with an error event and a closed connection", async () => {
  const headers = { "gw-aig-max-attempts": "3" };
  expect(await call("cut", "ok", headers)).toMatchObject({ isAnswered: false });
  expect(attempts("ok")).toHaveLength(0);
});

it.each(["error-event", "empty"])("a stream that begins with %s goes to the next step", async (model) => {
  expect(await call(model, "ok", { "gw-aig-max-attempts": "2" })).toMatchObject({ ...WHOLE, model: "ok" });
  expect(attempts(model)).toHaveLength(1);
});

it("a provider that asks for a longer wait than the caller allows is left at once", async () => {
  expect(await call("limit-long")).toMatchObject({ ...WHOLE, model: "ok" });
  expect(attempts("limit-long")).toHaveLength(1);
});

it("fallbackOn limits the failures after which the next step is tried", async () => {
  const only = (causes: unknown[], model: string) =>
    streamChat(server, [
      { provider: "openai", model, config: { fallbackOn: causes } },
      { provider: "groq", model: "ok" },
    ]);
  expect(await only([429], "overloaded")).toMatchObject({ status: 503 });
  expect(await only(["5xx"], "overloaded")).toMatchObject(WHOLE);
  expect(await only(["content_filter"], "content-filter")).toMatchObject(WHOLE);
  expect(await only(["context_length"], "content-filter")).toMatchObject({ status: 400 });
  expect(await only(["sometimes"], "ok")).toMatchObject({ status: 400, error: "2002" });
});

it("hedging answers with the faster of two steps, and cancels the other", async () => {
  const answer = await call("silent", "ok", { "gw-aig-hedge-after": "30" });
  expect(answer).toMatchObject({ ...WHOLE, model: "ok" });
  expect(answer.headers["gw-aig-step"]).toBe("1");
});
