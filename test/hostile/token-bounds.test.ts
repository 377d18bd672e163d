/** Tokens that try to exceed their limits: other gateways, more permissions, a later expiry. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
let now = Date.parse("2026-11-15T00:00:00Z");
const GATEWAYS = "/accounts/default/ai-gateway/gateways";
const TOKENS = "/accounts/default/tokens";
const AT = (ms: number) => new Date(now + ms).toISOString();

beforeAll(async () => {
  server = await startTestServer({ clock: { now: () => now } });
  for (const id of ["mine", "other"]) await server.api("POST", GATEWAYS, { id });
});
afterAll(() => server.stop());

const mint = (body: object, token?: string) => server.api("POST", TOKENS, { name: "child", ...body }, token);
const answer = ({ status, body }: Awaited<ReturnType<TestServer["api"]>>) => [status, body.errors[0]?.code];
const DENIED = [403, 10003];

describe("tokens created by a token", () => {
  it("a created token expires no later than its creator; no expiry is the latest", async () => {
    const maker = await server.token(["tokens.edit", "tags.read"], { expires_at: AT(60_000) });
    for (const expires_at of [undefined, null, AT(60_001), AT(1e9)]) {
      const refused = await mint({ permissions: ["tags.read"], expires_at }, maker);
      expect(answer(refused)).toEqual(DENIED);
      expect(refused.body.errors[0].message).toContain(`at most ${AT(60_000)}`);
    }
    expect((await mint({ permissions: ["tags.read"], expires_at: AT(60_000) }, maker)).status).toBe(200);
  });

  it("a created token has no permission that its creator lacks, also by the gateway's own path", async () => {
    const editor = await server.token(["gateway.edit", "gateway.read"]);
    const refused = await server.api("POST", `${GATEWAYS}/mine/tokens`, {}, editor);
    expect(answer(refused)).toEqual(DENIED);
    expect(refused.body.errors[0].message).toContain("gateway.run");
    const runner = await server.token(["gateway.edit", "gateway.run"], { expires_at: AT(60_000) });
    expect(answer(await server.api("POST", `${GATEWAYS}/mine/tokens`, {}, runner))).toEqual(DENIED);
    const within = await server.api("POST", `${GATEWAYS}/mine/tokens`, { expires_at: AT(1000) }, runner);
    expect([within.status, within.body.result.permissions]).toEqual([200, ["gateway.run"]]);
  });

  it("a created token is bound to the same gateway, which must be named", async () => {
    const maker = await server.token(["tokens.edit", "gateway.run"], { gateway_id: "mine" });
    for (const gateway_id of [undefined, null, "other", "none", "MINE"]) {
      expect(answer(await mint({ permissions: ["gateway.run"], gateway_id }, maker))).toEqual(DENIED);
    }
    expect((await mint({ permissions: ["gateway.run"], gateway_id: "mine" }, maker)).status).toBe(200);
  });

  it("a bound token needs an existing gateway and permissions of a gateway; null means unbound", async () => {
    const unknown = await mint({ permissions: ["gateway.run"], gateway_id: "none" });
    expect(answer(unknown)).toEqual([400, 7002]);
    expect(unknown.body.errors[0].message).toContain('gateway_id: the account has no gateway "none"');
    for (const permission of ["tags.read", "agents.edit", "webhooks.read"]) {
      const mixed = await mint({ permissions: ["gateway.run", permission], gateway_id: "mine" });
      expect(answer(mixed)).toEqual([400, 7002]);
      expect(mixed.body.errors[0].message).toContain(permission);
    }
    const unbound = await mint({ permissions: ["tags.read"], gateway_id: null, expires_at: null });
    expect([unbound.status, unbound.body.result.gateway_id, unbound.body.result.expires_at]).toEqual([
      200,
      null,
      null,
    ]);
  });

  it("a bound token is revoked with its gateway and stays revoked if the name is used again", async () => {
    await server.api("POST", GATEWAYS, { id: "brief", authentication: true });
    const token = await server.token(["gateway.run", "gateway.read"], { gateway_id: "brief" });
    await server.api("DELETE", `${GATEWAYS}/brief`);
    await server.api("POST", GATEWAYS, { id: "brief" });
    expect((await server.api("GET", `${GATEWAYS}/brief`, undefined, token)).status).toBe(401);
  });
});

describe("a token bound to a gateway", () => {
  const ALL = ["gateway.run", "gateway.read", "gateway.edit", "tokens.edit"];

  it("a bound token manages its own gateway", async () => {
    const token = await server.token(ALL, { gateway_id: "mine" });
    const reads = ["", "/logs", "/provider_configs", "/url/echo"].map((path) => `${GATEWAYS}/mine${path}`);
    for (const path of [...reads, GATEWAYS, "/accounts/default/ai-gateway/usage", TOKENS, "/accounts"]) {
      expect([path, (await server.api("GET", path, undefined, token)).status]).toEqual([path, 200]);
    }
    expect((await server.api("PUT", `${GATEWAYS}/mine`, { cache_ttl: 5 }, token)).status).toBe(200);
    const list = await server.api("GET", GATEWAYS, undefined, token);
    expect(list.body.result.map(({ id }: { id: string }) => id)).toEqual(["mine"]);
  });

  it("every operation on another gateway, on the account or of another area is 403", async () => {
    const token = await server.token(ALL, { gateway_id: "mine" });
    const { body } = await server.api("GET", "/openapi.json");
    const seen: string[] = [];
    for (const [template, operations] of Object.entries<Record<string, Operation>>(body.paths)) {
      for (const [method, operation] of Object.entries(operations)) {
        if (operation["x-signalbox-gateway"] === "narrowed") continue;
        const path = template
          .replace("{account_id}", "default")
          .replace("{gateway_id}", "other")
          .replaceAll(/\{\w+\}/g, "x");
        const found = await server.api(method.toUpperCase(), path, method === "get" ? undefined : {}, token);
        expect([method, path, ...answer(found)]).toEqual([method, path, ...DENIED]);
        seen.push(path);
      }
    }
    expect(seen.length).toBeGreaterThan(50);
    expect(seen).toContain(`${GATEWAYS}/other/logs`);
    const own = `${GATEWAYS}/mine`;
    expect((await server.api("GET", own)).body.result.authentication).toBe(false);
  });

  it("a bound token sees its own usage only", async () => {
    const token = await server.token(["gateway.read"], { gateway_id: "mine" });
    for (const gateway of ["mine", "other"]) {
      const response = await fetch(`${server.url}/v1/default/${gateway}/echo/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "echo", messages: [{ role: "user", content: "x" }] }),
      });
      // A call counts when it has ended.
      await response.arrayBuffer();
    }
    const usage = (query: string) =>
      server.api("GET", `/accounts/default/ai-gateway/usage${query}`, undefined, token);
    now += 1000;
    const { body } = await usage("?group_by=gateway");
    expect(body.result.map((row: { gateway_id: string }) => row.gateway_id)).toEqual(["mine"]);
    expect((await usage("?gateway_id=mine")).status).toBe(200);
    expect(answer(await usage("?gateway_id=other"))).toEqual(DENIED);
    expect(answer(await usage("?gateway_id=mine&gateway_id=other"))).toEqual(DENIED);
  });

  it("a bound token sees and revokes itself and tokens of its gateway without further permissions", async () => {
    const make = async (body: object) => (await mint(body)).body.result as { id: string; token: string };
    const wide = await make({ permissions: ["gateway.run", "gateway.edit"], gateway_id: "mine" });
    const equal = await make({ permissions: ["gateway.run"], gateway_id: "mine" });
    const foreign = await make({ permissions: ["gateway.run"], gateway_id: "other" });
    const unbound = await make({ permissions: ["gateway.run"] });
    const self = await make({ permissions: ["gateway.run", "tokens.edit"], gateway_id: "mine" });
    const { body } = await server.api("GET", TOKENS, undefined, self.token);
    const listed = body.result.map(({ id }: { id: string }) => id);
    expect(listed).toEqual(expect.arrayContaining([equal.id, self.id]));
    for (const { id } of [wide, foreign, unbound]) {
      expect(listed).not.toContain(id);
      expect(answer(await server.api("GET", `${TOKENS}/${id}`, undefined, self.token))).toEqual(DENIED);
      expect(answer(await server.api("DELETE", `${TOKENS}/${id}`, undefined, self.token))).toEqual(DENIED);
    }
    for (const { id } of [equal, self]) {
      expect((await server.api("DELETE", `${TOKENS}/${id}`, undefined, self.token)).status).toBe(200);
    }
  });
});

it("a token may list but not revoke a token with more permissions", async () => {
  const { body } = await mint({ permissions: ["tokens.edit", "tags.edit"] });
  const narrow = await server.token(["tokens.edit"]);
  expect((await server.api("GET", `${TOKENS}/${body.result.id}`, undefined, narrow)).status).toBe(200);
  expect(answer(await server.api("DELETE", `${TOKENS}/${body.result.id}`, undefined, narrow))).toEqual(
    DENIED,
  );
  expect((await server.api("GET", "/accounts/default", undefined, body.result.token)).status).toBe(200);
});

describe("an unknown or misspelt parameter", () => {
  it("every operation refuses an unknown parameter by name and never widens its result", async () => {
    const { body } = await server.api("GET", "/openapi.json");
    for (const [template, operations] of Object.entries<Record<string, Operation>>(body.paths)) {
      if (operations["get"] === undefined) continue;
      const path = template
        .replace("{account_id}", "default")
        .replace("{gateway_id}", "mine")
        .replaceAll(/\{\w+\}/g, "x");
      const found = await server.api("GET", `${path}?limti=1`);
      expect([path, ...answer(found)]).toEqual([path, 400, 7002]);
      expect(found.body.errors[0].message).toContain('unknown parameter "limti"');
    }
    expect(answer(await server.api("POST", `${TOKENS}?dry_run=true`, {}))).toEqual([400, 7002]);
    expect(answer(await server.api("DELETE", `${GATEWAYS}/mine?force`))).toEqual([400, 7002]);
    expect((await server.api("GET", `${GATEWAYS}?se%61rch=mine`)).status).toBe(200);
    expect(answer(await server.api("GET", `${GATEWAYS}?sear%63hh=mine`))).toEqual([400, 7002]);
    expect((await server.api("GET", `${GATEWAYS}?`)).status).toBe(200);
  });
});

interface Operation {
  readonly "x-signalbox-access": string;
  readonly "x-signalbox-gateway": string;
}
