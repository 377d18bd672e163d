/** Texts of management requests, on both databases: what one of them cannot store is refused by both. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openTestPostgres, type TestPostgres } from "../support/test-postgres.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { SECRET, sendGeneric } from "../support/webhook-sender.ts";

interface Described {
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
}

describe.each(["sqlite", "postgres"])("on %s", (engine) => {
  let server: TestServer;
  let postgres: TestPostgres | null = null;

  beforeAll(async () => {
    if (engine === "postgres") postgres = await openTestPostgres();
    const database = postgres === null ? {} : { DATABASE_URL: postgres.url };
    server = await startTestServer({ environment: { WEBHOOK_SECRET: SECRET, ...database } });
  });

  afterAll(async () => {
    await server.stop();
    await postgres?.drop();
  });

  it("a NUL in any query parameter is answered, and never with an internal error", async () => {
    const { body } = await server.api("GET", "/openapi.json");
    const failed: string[] = [];
    let tried = 0;
    for (const [path, methods] of Object.entries(body.paths as Record<string, Record<string, Described>>)) {
      if (path.startsWith("/client/")) continue;
      const filled = path
        .replace("{account_id}", "default")
        .replace("{gateway_id}", "default")
        .replace("{agent_name}", "webhook-agent")
        .replaceAll(/\{\w+\}/g, "x");
      for (const { name, in: place } of methods["get"]?.parameters ?? []) {
        if (place !== "query") continue;
        tried += 1;
        const answer = await server.api("GET", `${filled}?${name}=a%00b`);
        // A resource that was never tagged reads as 500 with a code of its own.
        if (answer.status >= 500 && answer.body?.errors?.[0]?.code !== 1004) failed.push(`${filled} ${name}`);
      }
    }
    expect(failed).toEqual([]);
    expect(tried).toBeGreaterThan(100);
  });

  it.each([
    "tokens?owner",
    "tokens?cursor",
    "audit_logs?actor",
    "audit_logs/export?actor",
    "ai-gateway/logs?gateway_id",
    "ai-gateway/logs/export?gateway_id",
    "ai-gateway/usage?gateway_id",
    "agents/webhook-agent/instances?search",
    "agents/problems?agent",
    "webhooks/deliveries?type",
    "webhooks/late-deliveries?cursor",
  ])("%s with a NUL is 400", async (path) => {
    const answer = await server.api("GET", `/accounts/default/${path}=a%00b`);
    expect([answer.status, answer.body.errors[0].message]).toEqual([400, expect.stringContaining("NUL")]);
  });

  it("a NUL inside a cursor is refused, too", async () => {
    const cursor = Buffer.from(JSON.stringify([0, "a\0b", "c"])).toString("base64url");
    const answer = await server.api("GET", `/accounts/default/agents/problems?cursor=${cursor}`);
    expect(answer.status).toBe(400);
  });

  it.each([
    ["POST", "/accounts", { name: "a\0b" }],
    ["POST", "/accounts/default/tokens", { name: "a\0b", permissions: ["tags.read"] }],
    ["POST", "/accounts/default/tokens", { name: "t", owner: "a\0b", permissions: ["tags.read"] }],
    ["POST", "/accounts/default/ai-gateway/gateways/default/tokens", { name: "a\0b" }],
    ["POST", "/accounts/default/webhooks/deliveries/replay", { type: "a\0b" }],
    ["POST", "/accounts/default/webhooks/deliveries/replay", { "a\0b": "c" }],
  ])("a NUL in the body of %s %s is 400: %j", async (method, path, body) => {
    const answer = await server.api(method, path, body);
    expect([answer.status, answer.body.errors[0].message]).toEqual([400, expect.stringContaining("NUL")]);
  });

  it("a text that only looks like an escaped NUL is stored", async () => {
    const answer = await server.api("POST", "/accounts/default/tokens", {
      name: "a\\u0000b",
      permissions: ["tags.read"],
    });
    expect([answer.status, answer.body.result.name]).toEqual([200, "a\\u0000b"]);
  });

  it("a deep body is refused by name", async () => {
    const deep = `{"name":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
    const answer = await server.api("POST", "/accounts", deep);
    expect([answer.status, answer.body.errors[0].message]).toEqual([
      400,
      expect.stringContaining("nested too deeply"),
    ]);
  });

  it("a parameter that may stand once is refused when it stands twice, and lists may repeat", async () => {
    for (const path of [
      "tokens?owner=a&owner=a",
      "audit_logs?limit=1&limit=2",
      "tags?resource_type=worker&resource_id=a&resource_id=b",
      "tags/resources?name=a&name=b",
      "tags/keys?case_insensitive=true&case_insensitive=false",
      "ai-gateway/gateways?per_page=1&per_page=2",
      "ai-gateway/gateways/default/logs?page=1&page=2",
      "ai-gateway/gateways/default/logs?search=a&search=b",
      "ai-gateway/logs?q=a&q=b",
      "webhooks/deliveries?status=failed&status=accepted",
    ]) {
      const answer = await server.api("GET", `/accounts/default/${path}`);
      expect([path, answer.status, answer.body.errors[0]?.message]).toEqual([
        path,
        400,
        expect.stringContaining("may stand only once"),
      ]);
    }
    for (const path of [
      "tags/resources?tag=a&tag=b&type=worker&type=queue&id=1&id=2",
      "tags/values/a?type=worker&type=queue",
      "ai-gateway/gateways?tag=a&tag=b",
      "ai-gateway/usage?group_by=day&group_by=model&gateway_id=a&gateway_id=b&tag=a&tag=b&only=owner=a&only=user=b",
      "ai-gateway/logs?gateway_id=a&gateway_id=b",
      "ai-gateway/gateways/default/logs?filters.key=model&filters.operator=eq&filters.value=a&filters.key=provider&filters.operator=eq&filters.value=b",
      "ai-gateway/gateways/default/logs?model=a&model=b",
      "agents/webhook-agent/instances?tag=a&tag=b",
      "webhooks/sources?tag=a&tag=b",
    ]) {
      const answer = await server.api("GET", `/accounts/default/${path}`);
      expect([path, answer.status]).toEqual([path, 200]);
    }
  });

  it.each([
    ["POST", "/login-links"],
    ["POST", "/provider_keys/rotate_master"],
    ["DELETE", "/accounts/default/ai-gateway/gateways/default/logs"],
    ["DELETE", "/accounts/default/agents/webhook-agent/instances/nobody"],
    ["POST", "/accounts/default/webhooks/late-deliveries/nobody/replay"],
  ])(
    "%s %s refuses fields, lists and broken JSON in its body, which it does not have",
    async (method, path) => {
      for (const body of ['{"zzz":1}', "[]", "{"]) {
        expect([body, (await server.api(method, path, body)).status]).toEqual([body, 400]);
      }
      const { status } = await server.api(method, path);
      expect((await server.api(method, path, "{}")).status).toBe(status);
    },
  );

  it("an export has its head and its lines, and only a head if it has no lines", async () => {
    await sendGeneric(server.url, "exported", { type: "t" });
    const path = "/accounts/default/audit_logs/export?format=csv";
    const { text } = await server.api("GET", path);
    expect(text.split("\r\n").length).toBeGreaterThan(2);
    expect(text).toMatch(/^seq,id,when,/);
    const none = await server.api("GET", `${path}&actor=nobody`);
    expect(none.text).toMatch(/^seq,id,when,[^\n]*\r\n$/);
    const calls = await server.api("GET", "/accounts/default/ai-gateway/logs/export?format=csv");
    expect(calls.text).toMatch(/^gateway_id,/);
  });
});
