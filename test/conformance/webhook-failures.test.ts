/** Why deliveries fail or are rejected: for operators, through the management API and the command line, and never for senders. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand } from "../support/run-cli.ts";
import { startTestServer, type TestServer, type TestServerOptions } from "../support/test-server.ts";
import { hexSignature, post, SECRET, sendGeneric } from "../support/webhook-sender.ts";

const SOURCES = "/accounts/default/webhooks/sources";
const DELIVERIES = "/accounts/default/webhooks/deliveries";

const OPTIONS: TestServerOptions = {
  environment: { WEBHOOK_SECRET: SECRET, SHOP_WEBHOOK_SECRET: SECRET, DOOR_WEBHOOK_SECRET: SECRET },
  file: {
    agents: { modules: [join(import.meta.dirname, "../fixtures/debug-agents.ts")] },
    webhooks: {
      sources: {
        generic: { agent: "tracker" },
        shop: {
          agent: "tracker",
          scheme: "generic",
          entity: ["body:order.shop.id"],
          eventType: ["body:order.event"],
        },
        door: { agent: "tracker", scheme: "generic", entity: ["header:x-door"] },
      },
    },
  },
};

let folder: string;
let server: TestServer;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-failures-"));
  server = await startTestServer({ ...OPTIONS, dataDir: folder });
});

afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

const test = async (source: string, body: object) =>
  (await server.api("POST", `${SOURCES}/${source}/test`, body)).body.result;
const read = async (id: string) => (await server.api("GET", `${DELIVERIES}/${id}`)).body.result;
const list = async (query: string) => (await server.api("GET", `${DELIVERIES}?${query}`)).body.result;

describe("a delivery that its agent fails", () => {
  it("tells operators why, with the stack, and the sender nothing", async () => {
    const sent = await sendGeneric(server.url, "ticket-9", { id: "f-1", type: "opened" });
    expect([sent.status, sent.text.includes("tracker down"), sent.text.includes("onEvent")]).toEqual([
      500,
      false,
      false,
    ]);
    const [row] = await list("delivery_id=f-1");
    expect(row).toMatchObject({
      status: "failed",
      reason: "handler_failed",
      error: { name: "TypeError", message: "issue tracker down" },
      explanation: expect.stringContaining("threw"),
      replayed_at: null,
    });
    expect((await read(row.id)).error.stack).toMatch(/issue tracker down\n.*debug-agents\.ts/s);
    const stranger = await server.token(["agents.read"]);
    expect((await server.api("GET", `${DELIVERIES}/${row.id}`, undefined, stranger)).status).toBe(403);
    const listed = await runCommand(server, ["webhooks", "deliveries", "--status", "failed"]);
    expect(listed.out).toContain("TypeError: issue tracker down");
  });

  it("keeps what the agent answered", async () => {
    const sent = await sendGeneric(server.url, "ticket-9", { id: "f-2", type: "answer" });
    expect([sent.status, sent.text]).toEqual([422, "no such order"]);
    const [row] = await list("delivery_id=f-2");
    expect(row).toMatchObject({
      reason: "refused_by_agent",
      error: { name: "Response", message: "the agent answered 422: no such order" },
    });
  });

  it("is the last failure of its instance, also after a restart", async () => {
    const instance = "/accounts/default/agents/tracker/instances/ticket-9";
    const failure = {
      kind: "delivery",
      label: "generic opened",
      name: "TypeError",
      message: "issue tracker down",
    };
    expect((await server.api("GET", instance)).body.result.last_failure).toMatchObject(failure);
    await server.stop();
    server = await startTestServer({ ...OPTIONS, dataDir: folder });
    const { result } = (await server.api("GET", instance)).body;
    expect(result).toMatchObject({ last_failure: failure, last_error: "TypeError: issue tracker down" });
    const { body } = await server.api("GET", `${instance}/events`);
    expect(body.result).toMatchObject([
      {
        type: "turn:error",
        detail: { error: "issue tracker down", stack: expect.stringContaining("onEvent") },
      },
    ]);
    expect((await read((await list("delivery_id=f-1"))[0].id)).error.stack).toContain("onEvent");
  });
});

describe("a test event", () => {
  it("answers with the delivery, the instance and the error", async () => {
    const result = await test("generic", { entity: "tested", type: "opened" });
    expect(result).toMatchObject({
      status: 500,
      outcome: "failed",
      reason: "handler_failed",
      agent: "tracker",
      instance: "tested",
      error: { name: "TypeError", message: "issue tracker down", stack: expect.any(String) },
    });
    expect(await read(result.id)).toMatchObject({ delivery_id: result.delivery_id, type: "opened" });
    const sent = await runCommand(server, ["webhooks", "send", "generic", "tested", "--type", "opened"]);
    expect(sent).toMatchObject({ code: 1, out: expect.stringContaining("TypeError: issue tracker down") });
  });

  it("has the type, the payload and the headers of the caller", async () => {
    const own = { payload: { kind: "x" }, headers: { "X-Custom": "1" }, entity: "own", type: "calm" };
    const result = await test("generic", own);
    expect(result).toMatchObject({ status: 200, instance: "own" });
    const { body, headers, type } = await read(result.id);
    expect([JSON.parse(body), headers["x-custom"], type]).toEqual([{ kind: "x" }, "1", "calm"]);
  });

  it("of an own source has the entity and the type where the rules of the source look for them", async () => {
    const shop = await test("shop", { entity: "berlin", type: "calm" });
    expect(shop).toMatchObject({ status: 200, instance: "berlin" });
    expect(JSON.parse((await read(shop.id)).body)).toMatchObject({
      order: { shop: { id: "berlin" }, event: "calm" },
    });
    expect(await test("door", { type: "calm" })).toMatchObject({ status: 200, instance: "sample-entity" });
    const sent = await runCommand(server, ["webhooks", "send", "shop", "--type", "calm"]);
    expect(sent.code).toBe(0);
  });

  it("that is rejected says so and is listed, however many were rejected before it", async () => {
    for (let i = 0; i < 40; i++) await post(`${server.url}/webhooks/generic`, "{}", {});
    const result = await test("generic", { payload: [] });
    expect(result).toMatchObject({
      status: 400,
      outcome: "rejected",
      reason: "invalid_payload",
      instance: null,
    });
    expect(await read(result.id)).toMatchObject({ error: { name: "webhook_invalid_payload" }, body: null });
  });
});

describe("a rejected delivery", () => {
  it("is listed with what is needed to debug it, and survives a restart", async () => {
    const body = JSON.stringify({ id: 7, token: "very-secret" });
    const headers = {
      "user-agent": "Shop/2",
      "x-signature": hexSignature(body, "wrong"),
      authorization: "Bearer abc",
    };
    await post(`${server.url}/webhooks/door`, body, headers);
    const [row] = await list("source=door&status=rejected");
    await server.stop();
    server = await startTestServer({ ...OPTIONS, dataDir: folder });
    const detail = await read(row.id);
    expect(detail).toMatchObject({
      reason: "signature_mismatch",
      explanation: expect.stringContaining("secret"),
      request: {
        address: "127.0.0.1",
        user_agent: "Shop/2",
        header_names: expect.arrayContaining(["x-signature", "authorization"]),
        signature: {
          header: "x-signature",
          value: expect.stringMatching(/^sha256=.{9}… \(71 characters\)$/),
        },
        expected: expect.stringContaining("x-signature"),
        body_preview: '{"id":7,"token":"…"}',
      },
    });
    expect(JSON.stringify(detail)).not.toMatch(/Bearer|very-secret/);
  });
});

describe("failing deliveries", () => {
  it("are counted by source, found by time and reason, and replayed together when the agent works again", async () => {
    for (const name of ["a", "b", "a"]) {
      const body = JSON.stringify({ order: { shop: { id: name }, event: "opened" }, n: Math.random() });
      await post(`${server.url}/webhooks/shop`, body, { "x-signature": hexSignature(body) });
    }
    const summary = async () => (await server.api("GET", `${DELIVERIES}/summary`)).body.result;
    const shopOf = (all: { sources: { source: string }[] }) =>
      all.sources.find(({ source }) => source === "shop");
    expect(shopOf(await summary())).toMatchObject({
      failed: 3,
      failing: 3,
      last_error: "TypeError: issue tracker down",
    });
    expect((await summary()).totals.failing).toBeGreaterThan(3);
    expect(
      await list("source=shop&reason=handler_failed&since=2020-01-01T00:00:00Z&unresolved=true"),
    ).toHaveLength(3);
    expect(await list("source=shop&until=2020-01-01T00:00:00Z")).toEqual([]);
    const replay = async (body: object) =>
      (await server.api("POST", `${DELIVERIES}/replay`, body)).body.result;
    const first = await replay({ source: "shop", limit: 2 });
    expect(first).toMatchObject({ matched: 2, replayed: 0, skipped: 0, cursor: expect.any(String) });
    expect(first.failed).toHaveLength(2);
    expect(first.failed[0].error).toBe("TypeError: issue tracker down");
    const [one] = await list("source=shop&unresolved=true");
    const single = await server.api("POST", `${DELIVERIES}/${one.id}/replay`, {});
    expect(single.body.result).toMatchObject({ status: "failed", error: { message: "issue tracker down" } });
    await server.api("POST", "/agents/tracker/any/rpc/repair", []);
    const rest = await replay({ source: "shop", cursor: first.cursor });
    expect(rest).toEqual({ matched: 1, replayed: 1, failed: [], skipped: 0, cursor: null });
    const again = await runCommand(server, ["webhooks", "replay", "--failed", "--source", "shop"]);
    expect(again.out).toContain("replayed 2");
    expect(shopOf(await summary())).toMatchObject({ failed: 3, failing: 0 });
    expect(
      (await list("source=shop&status=failed")).every(
        ({ replayed_at }: { replayed_at: string }) => replayed_at !== null,
      ),
    ).toBe(true);
    const reader = await server.token(["webhooks.read"]);
    expect((await server.api("POST", `${DELIVERIES}/replay`, {}, reader)).status).toBe(403);
  });
});
