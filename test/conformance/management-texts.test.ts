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
  ])("%s=a%%00b is 400", async (path) => {
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
