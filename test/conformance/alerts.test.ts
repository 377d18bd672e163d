/** Alerts: when they fire, whom they tell and how, the quiet period, restarts, and who may see them. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { CHAT, post } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { SECRET as WEBHOOK_SECRET, sendGeneric } from "../support/webhook-sender.ts";
import { waitUntil } from "../support/wait-until.ts";

const SECRET = `whsec_${Buffer.from("a-secret-of-alerts-with-32-bytes").toString("base64")}`;
const PATH = "/accounts/default/alerts";

let provider: ProviderPeer;
let receiver: ProviderPeer;
let server: TestServer;
let dataDir: string;
let now = Date.parse("2026-11-16T12:00:00Z");

const start = () =>
  startTestServer({
    dataDir,
    clock: { now: () => now },
    environment: { WEBHOOK_SECRET },
    file: {
      providers: { openai: { baseUrl: provider.url } },
      outgoing: { allowPrivateHosts: true },
      alerts: { checkIntervalMs: 20 },
      gateway: { prices: { openai: { "gpt-4o-mini": { in: 1_000_000, out: 1_000_000 } } } },
    },
  });

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "signalbox-alerts-"));
  provider = await startProvider((_, response) => sendJson(response, 500, {}));
  receiver = await startProvider((_, response) => sendJson(response, 200, {}));
  server = await start();
});
afterAll(async () => {
  await server.stop();
  await provider.close();
  await receiver.close();
  await rm(dataDir, { recursive: true, force: true });
});
beforeEach(async () => {
  const { body } = await server.api("GET", PATH);
  for (const { id } of (body as { result: { id: string }[] }).result)
    await server.api("DELETE", `${PATH}/${id}`);
  receiver.requests.length = 0;
  receiver.answer = (_, response) => sendJson(response, 200, {});
  provider.answer = (_, response) => sendJson(response, 500, {});
  now += 3_600_000;
});

type Alert = Record<string, unknown> & { id: string };
async function create(settings: object): Promise<Alert> {
  const { status, body } = await server.api("POST", PATH, {
    name: "Errors",
    metric: "error_rate",
    threshold: 0.5,
    window: 60,
    min_calls: 2,
    receivers: [{ type: "webhook", url: `${receiver.url}/hook`, secret: SECRET }],
    ...settings,
  });
  expect([status, body]).toEqual([200, body]);
  return (body as { result: Alert }).result;
}
const call = () => post(server, "openai/chat/completions", { headers: { authorization: "Bearer sk" } });
const notices = (count: number) =>
  waitUntil(
    () => receiver.requests,
    (all) => all.length >= count,
  );
const read = async (id: string) =>
  ((await server.api("GET", `${PATH}/${id}`)).body as { result: Alert }).result;
const typeOf = (body: string) => (JSON.parse(body) as { type: string }).type;

it("an error rate fires once, signed as Standard Webhooks demand, and resolves when the window is clean", async () => {
  const { id } = await create({});
  await call();
  await call();
  const [request] = await notices(1);
  const headers = request?.headers as Record<string, string>;
  const payload = new Webhook(SECRET);
  // The receiver's library compares with the real time; the clock of this test is another one.
  const signed = payload.sign(
    headers["webhook-id"] ?? "",
    new Date(Number(headers["webhook-timestamp"]) * 1000),
    request?.body ?? "",
  );
  expect(headers["webhook-signature"]).toBe(signed);
  expect(JSON.parse(request?.body ?? "{}")).toMatchObject({
    type: "alert.firing",
    data: {
      alert_id: id,
      account_id: "default",
      name: "Errors",
      metric: "error_rate",
      value: 1,
      threshold: 0.5,
    },
  });
  expect(await read(id)).toMatchObject({ status: "firing", value: 1 });
  now += 61_000;
  const all = await notices(2);
  expect(all.map(({ body }) => typeOf(body))).toEqual(["alert.firing", "alert.resolved"]);
  expect(await read(id)).toMatchObject({ status: "ok" });
  const { body } = await server.api("GET", `${PATH}/${id}/notices`);
  expect((body as { result: object[] }).result).toMatchObject([
    { kind: "resolved", attempts: 1, problem: null },
    { kind: "firing", attempts: 1, problem: null },
  ]);
});

it("a test notice is answered when it was sent, also while another notice is on its way", async () => {
  const { id } = await create({});
  const held = Promise.withResolvers<void>();
  const order: string[] = [];
  receiver.answer = async (_, response) => {
    const isFirst = receiver.requests.length === 1;
    if (isFirst) await held.promise;
    else order.push("sent");
    sendJson(response, 200, {});
  };
  const first = server.api("POST", `${PATH}/${id}/test`);
  await notices(1);
  const second = server.api("POST", `${PATH}/${id}/test`).then(() => order.push("answered"));
  await waitUntil(
    async () => (await server.api("GET", `${PATH}/${id}/notices`)).body as { result: unknown[] },
    ({ result }) => result.length === 2,
  );
  held.resolve();
  await Promise.all([first, second]);
  expect(order).toEqual(["sent", "answered"]);
});

it("is quiet for the quiet period, and speaks again when the rule still fires after it", async () => {
  await create({ quiet_period: 600, notify_resolved: false });
  await call();
  await call();
  await notices(1);
  now += 61_000;
  const { body } = await server.api("GET", PATH);
  const [{ id }] = (body as { result: [Alert] }).result;
  await waitUntil(
    () => read(id),
    ({ status }) => status === "ok",
  );
  await call();
  await call();
  await waitUntil(
    () => read(id),
    ({ status }) => status === "firing",
  );
  expect(receiver.requests).toHaveLength(1);
  now += 600_000;
  await call();
  await call();
  expect((await notices(2)).map(({ body: text }) => typeOf(text))).toEqual(["alert.firing", "alert.firing"]);
});

it("speaks Slack's format, and a name cannot address a channel", async () => {
  provider.answer = (_, response) =>
    sendJson(response, 200, { usage: { prompt_tokens: 1, completion_tokens: 1 }, choices: [] });
  const alert = await create({
    name: "Spend <!channel>",
    metric: "spend",
    threshold: 1,
    receivers: [{ type: "slack", url: `${receiver.url}/services/T0/B0/x` }],
  });
  expect(alert["receivers"]).toEqual([{ type: "slack", url: "[secret]" }]);
  await call();
  const [request] = await notices(1);
  expect(request?.url).toBe("/services/T0/B0/x");
  const { text } = JSON.parse(request?.body ?? "{}") as { text: string };
  expect(text).toContain("*Spend &lt;!channel&gt;* firing: spend $2.0000 (limit $1.0000 in 60 s)");
});

it("latency and failed deliveries fire, too", async () => {
  await create({ name: "Slow", metric: "latency_p95", threshold: 0.0001 });
  await call();
  await call();
  expect(JSON.parse((await notices(1))[0]?.body ?? "{}")).toMatchObject({ data: { metric: "latency_p95" } });
  await create({ name: "Deliveries", metric: "failed_deliveries", threshold: 1, source: "generic" });
  await sendGeneric(server.url, "x", { entity: "a", type: "b" }, {}, "wrong");
  await sendGeneric(server.url, "x", { entity: "a", type: "b" });
  expect(receiver.requests).toHaveLength(1);
  expect(CHAT).not.toBe("");
});

it("what a guardrail finds fires, for the rule and the gateway that are named", async () => {
  const path = "/accounts/default/ai-gateway/gateways/default/guardrails";
  const word = (id: string, text: string, action: string) => ({ id, type: "words", words: [text], action });
  await server.api("PUT", path, {
    rules: [word("greetings", "Hello", "block"), word("farewells", "Bye", "flag")],
  });
  const metric = { metric: "guardrails", threshold: 2 };
  await create({ ...metric, name: "Another rule", guardrail: "farewells" });
  await create({ ...metric, name: "Another gateway", gateway_id: "elsewhere" });
  await create({ ...metric, name: "Greetings", guardrail: "greetings", gateway_id: "default" });
  expect((await call()).status).toBe(424);
  await call();
  const [notice] = await notices(1);
  expect(JSON.parse(notice?.body ?? "{}")).toMatchObject({
    data: { name: "Greetings", metric: "guardrails", value: 2 },
  });
  await server.api("PUT", path, { rules: [] });
  const bad = await server.api("POST", PATH, { name: "x", metric: "guardrail" });
  expect(bad.status).toBe(400);
});

it("a notice that fails is sent again with the same id, and a restart loses neither state nor notice", async () => {
  receiver.answer = (_, response) => sendJson(response, 503, {});
  const { id } = await create({});
  await call();
  await call();
  await notices(1);
  await waitUntil(
    async () =>
      (await server.api("GET", `${PATH}/${id}/notices`)).body as { result: { problem: string | null }[] },
    ({ result }) => result[0]?.problem != null,
  );
  await server.stop();
  server = await start();
  receiver.answer = (_, response) => sendJson(response, 200, {});
  now += 6000;
  const [first, second] = await notices(2);
  expect(second?.headers["webhook-id"]).toBe(first?.headers["webhook-id"]);
  expect(await read(id)).toMatchObject({ status: "firing" });
  now += 61_000;
  expect(typeOf((await notices(3))[2]?.body ?? "{}")).toBe("alert.resolved");
});

it("a test notice goes to every receiver", async () => {
  const { id } = await create({
    receivers: [
      { type: "webhook", url: `${receiver.url}/a` },
      { type: "slack", url: `${receiver.url}/b` },
    ],
  });
  await server.api("POST", `${PATH}/${id}/test`, {});
  expect((await notices(2)).map(({ url }) => url).sort()).toEqual(["/a", "/b"]);
});

describe("who may", () => {
  it("refuses private addresses unless the operator allows them, and bad settings", async () => {
    const strict = await startTestServer();
    const base = { name: "x", metric: "spend", threshold: 1 };
    for (const url of ["http://127.0.0.1/x", "http://localhost/x", "http://[::1]/x", "file:///etc/passwd"]) {
      const { status } = await strict.api("POST", PATH, { ...base, receivers: [{ type: "webhook", url }] });
      expect([url, status]).toEqual([url, 400]);
    }
    const url = "https://example.com/x";
    for (const wrong of [
      { threshold: 0 },
      { metric: "error_rate", threshold: 2 },
      { metric: "weather" },
      { receivers: [] },
      { receivers: [{ type: "slack", url: "[secret]" }] },
      { window: 1 },
    ]) {
      const { status } = await strict.api("POST", PATH, {
        ...base,
        receivers: [{ type: "webhook", url }],
        ...wrong,
      });
      expect([wrong, status]).toEqual([wrong, 400]);
    }
    await strict.stop();
  });

  it("a stored secret moves to no other address, and is never shown", async () => {
    const { id, ...alert } = await create({});
    expect(JSON.stringify(alert)).not.toContain(SECRET);
    const settings = {
      name: "Errors",
      metric: "error_rate",
      threshold: 0.5,
      receivers: [{ type: "webhook", url: `${receiver.url}/hook`, secret: "[secret]" }],
    };
    expect((await server.api("PUT", `${PATH}/${id}`, settings)).status).toBe(200);
    const moved = [{ type: "webhook", url: `${receiver.url}/other`, secret: "[secret]" }];
    expect((await server.api("PUT", `${PATH}/${id}`, { ...settings, receivers: moved })).status).toBe(400);
  });

  it("figures of another area need its permission, and other accounts see nothing", async () => {
    const deliveries = await create({ metric: "failed_deliveries", threshold: 1 });
    const gatewayOnly = await server.token(["gateway.read", "gateway.edit"]);
    const list = await server.api("GET", PATH, undefined, gatewayOnly);
    expect((list.body as { result: object[] }).result).toEqual([]);
    expect((await server.api("GET", `${PATH}/${deliveries.id}`, undefined, gatewayOnly)).status).toBe(403);
    expect((await server.api("DELETE", `${PATH}/${deliveries.id}`, undefined, gatewayOnly)).status).toBe(403);
    await server.api("POST", "/accounts", { id: "elsewhere" });
    const foreign = await server.token(["gateway.read", "webhooks.read"], { account: "elsewhere" });
    expect((await server.api("GET", `${PATH}/${deliveries.id}`, undefined, foreign)).status).toBe(403);
    expect(
      (await server.api("GET", `/accounts/elsewhere/alerts/${deliveries.id}`, undefined, foreign)).status,
    ).toBe(404);
  });
});
