/** Accounts, tokens and permissions in the management API. */
import { readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { generateToken, isTokenShaped } from "@signalbox/protocol";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
let now = Date.parse("2026-11-15T00:00:00Z");
beforeAll(async () => {
  server = await startTestServer({ clock: { now: () => now } });
  await server.api("POST", "/accounts", { id: "other" });
});
afterAll(() => server.stop());

const create = (body: object, token?: string, account = "default") =>
  server.api("POST", `/accounts/${account}/tokens`, body, token);

describe("authentication", () => {
  it("a missing, malformed or unknown credential is answered 401 with code 10000", async () => {
    const failure = {
      success: false,
      errors: [{ code: 10000, message: "Authentication error" }],
      messages: [],
      result: null,
    };
    for (const token of [null, "x", generateToken(), `${ROOT_TOKEN}x`, ROOT_TOKEN.slice(0, -1)]) {
      const { status, body } = await server.api("GET", "/accounts", undefined, token);
      expect([status, body]).toEqual([401, failure]);
    }
    const basic = await fetch(`${server.url}/accounts`, {
      headers: { authorization: `Basic ${btoa(`a:${ROOT_TOKEN}`)}` },
    });
    expect(basic.status).toBe(401);
  });

  it("the name of the authentication scheme is case-insensitive", async () => {
    const response = await fetch(`${server.url}/accounts`, {
      headers: { authorization: `bEaReR ${ROOT_TOKEN}` },
    });
    expect(response.status).toBe(200);
  });
});

describe("accounts", () => {
  it("the account `default` exists after the first start", async () => {
    const { body } = await server.api("GET", "/accounts/default");
    expect(body).toMatchObject({
      success: true,
      errors: [],
      messages: [],
      result: { id: "default", name: "default" },
    });
  });

  it("root creates accounts with a given or a generated id, below / and below /client/v4", async () => {
    const named = await server.api("POST", "/client/v4/accounts", { id: "Team_1-x", name: "Team one" });
    expect(named.body.result).toEqual({
      id: "Team_1-x",
      name: "Team one",
      created_at: "2026-11-15T00:00:00.000Z",
    });
    const unnamed = await server.api("POST", "/accounts", {});
    expect(unnamed.body.result.id).toMatch(/^[a-z0-9]{26}$/);
    const { body } = await server.api("GET", "/accounts");
    expect(body.result.map((account: { id: string }) => account.id)).toEqual(
      expect.arrayContaining(["default", "Team_1-x"]),
    );
    expect(body.result_info.count).toBe(body.result.length);
  });

  it("an invalid id, an unknown member and an existing id are refused", async () => {
    for (const body of [
      { id: "" },
      { id: "a b" },
      { id: "../x" },
      { id: "a".repeat(65) },
      { id: 7 },
      { idd: "x" },
      [],
      "nope",
    ]) {
      const answer = await server.api("POST", "/accounts", body);
      expect([answer.status, answer.body.errors[0].code]).toEqual([400, 7002]);
    }
    const again = await server.api("POST", "/accounts", { id: "default" });
    expect([again.status, again.body.errors[0].code]).toEqual([409, 7004]);
  });

  it("an unknown account is 404 for root and 403 for every other token", async () => {
    const token = await server.token(["tokens.edit"]);
    expect((await server.api("GET", "/accounts/nobody")).status).toBe(404);
    expect((await server.api("GET", "/accounts/nobody", undefined, token)).status).toBe(403);
  });
});

describe("request bodies", () => {
  it("a body of another content type is refused with 415, a body that is not JSON with 400", async () => {
    const send = (body: string | Uint8Array<ArrayBuffer>, type: string) =>
      fetch(`${server.url}/accounts`, {
        method: "POST",
        body,
        headers: { authorization: `Bearer ${ROOT_TOKEN}`, "content-type": type },
      });
    expect((await send("{}", "text/plain")).status).toBe(415);
    expect((await send("{", "application/json")).status).toBe(400);
    expect((await send(new Uint8Array([0x22, 0xff, 0x22]), "application/json")).status).toBe(400);
    expect((await send('{"id":"by-curl"}', "application/x-www-form-urlencoded")).status).toBe(200);
    expect((await send("id=by-form", "application/x-www-form-urlencoded")).status).toBe(400);
    expect((await send('{"id":"vendor-json"}', "application/vnd.api+json; charset=utf-8")).status).toBe(200);
  });
});

describe("tokens", () => {
  it("a token is shown once, at creation, and only its hash is stored", async () => {
    const { body, headers } = await create({ name: "ci", permissions: ["tags.read", "tags.edit"] });
    const { token, id } = body.result;
    expect(token).toMatch(/^sbx_[0-9A-Za-z]{46}$/);
    expect(isTokenShaped(token)).toBe(true);
    expect(headers.get("cache-control")).toBe("no-store");
    const shown = await server.api("GET", `/accounts/default/tokens/${id}`);
    expect(shown.body.result).toMatchObject({
      id,
      name: "ci",
      permissions: ["tags.read", "tags.edit"],
      last_four: token.slice(-4),
    });
    const list = await server.api("GET", "/accounts/default/tokens");
    expect(JSON.stringify([shown.body, list.body])).not.toContain(token);
    for (const file of readdirSync(server.dataDir, { recursive: true, encoding: "utf8" })) {
      if (statSync(join(server.dataDir, file)).isDirectory()) continue;
      expect(readFileSync(join(server.dataDir, file), "latin1"), file).not.toContain(token);
    }
    expect(JSON.stringify(server.logs)).not.toContain(token);
  });

  it("a new token works immediately, within its permissions and its account", async () => {
    const token = await server.token(["tags.read"]);
    expect((await server.api("GET", "/accounts/default", undefined, token)).status).toBe(200);
    const denied = await server.api("GET", "/accounts/default/tokens", undefined, token);
    expect([denied.status, denied.body.errors]).toEqual([
      403,
      [{ code: 10003, message: "Permission denied" }],
    ]);
    expect((await server.api("GET", "/accounts/other", undefined, token)).status).toBe(403);
    expect((await server.api("POST", "/accounts", { id: "mine" }, token)).status).toBe(403);
    const { body } = await server.api("GET", "/accounts", undefined, token);
    expect(body.result.map((account: { id: string }) => account.id)).toEqual(["default"]);
  });

  it("the first request after a revocation is refused", async () => {
    const { body } = await create({ name: "short", permissions: ["tokens.edit"] });
    const { token, id } = body.result;
    expect((await server.api("GET", "/accounts/default/tokens", undefined, token)).status).toBe(200);
    expect((await server.api("DELETE", `/accounts/default/tokens/${id}`)).body.result).toEqual({ id });
    expect((await server.api("GET", "/accounts/default/tokens", undefined, token)).status).toBe(401);
    expect((await server.api("DELETE", `/accounts/default/tokens/${id}`)).status).toBe(404);
    expect((await server.api("GET", `/accounts/default/tokens/${id}`)).status).toBe(404);
  });

  it("a token may revoke itself", async () => {
    const { body } = await create({ name: "self", permissions: ["tokens.edit"] });
    const answer = await server.api(
      "DELETE",
      `/accounts/default/tokens/${body.result.id}`,
      undefined,
      body.result.token,
    );
    expect(answer.status).toBe(200);
  });

  it("a token stops working at its expiry", async () => {
    const token = await server.token(["tags.read"], { expires_at: new Date(now + 1000).toISOString() });
    expect((await server.api("GET", "/accounts/default", undefined, token)).status).toBe(200);
    now += 1000;
    expect((await server.api("GET", "/accounts/default", undefined, token)).status).toBe(401);
    const past = await create({
      name: "late",
      permissions: ["tags.read"],
      expires_at: new Date(now).toISOString(),
    });
    expect([past.status, past.body.errors[0].message]).toEqual([400, "expires_at must be in the future"]);
  });

  it("a token cannot create a token with a permission that it does not have", async () => {
    const maker = await server.token(["tokens.edit", "tags.read"]);
    expect((await create({ name: "ok", permissions: ["tags.read"] }, maker)).status).toBe(200);
    expect((await create({ name: "more", permissions: ["tags.edit"] }, maker)).status).toBe(403);
    expect((await create({ name: "elsewhere", permissions: ["tags.read"] }, maker, "other")).status).toBe(
      403,
    );
  });

  it("a token bound to a gateway cannot create an unbound token", async () => {
    const maker = await server.token(["tokens.edit", "gateway.run"], { gateway_id: "default" });
    expect((await create({ name: "wide", permissions: ["gateway.run"] }, maker)).status).toBe(403);
    expect(
      (await create({ name: "same", permissions: ["gateway.run"], gateway_id: "default" }, maker)).status,
    ).toBe(200);
  });

  it("the error of an invalid request names the member", async () => {
    for (const [body, where] of [
      [{ permissions: ["tags.read"] }, "name"],
      [{ name: "x" }, "permissions"],
      [{ name: "x", permissions: [] }, "permissions"],
      [{ name: "x", permissions: ["everything"] }, "permissions.0"],
      [{ name: "x", permissions: ["tags.read"], expires_at: "tomorrow" }, "expires_at"],
    ] as const) {
      const answer = await create(body);
      expect([answer.status, answer.body.errors[0].code]).toEqual([400, 7002]);
      expect(answer.body.errors[0].message).toContain(where);
    }
  });

  it("tokens are listed in order of creation, 100 per page, with the time of the last use", async () => {
    await server.api("POST", "/accounts", { id: "many" });
    for (let i = 0; i < 101; i++) await server.token(["tags.read"], { account: "many" });
    const used = await server.token(["tags.read"], { account: "many" });
    await server.api("GET", "/accounts/many", undefined, used);
    const first = await server.api("GET", "/accounts/many/tokens");
    expect(first.body.result).toHaveLength(100);
    expect(first.body.result_info).toEqual({
      count: 100,
      cursor: expect.any(String),
      cursors: { after: first.body.result_info.cursor },
    });
    const second = await server.api("GET", `/accounts/many/tokens?cursor=${first.body.result_info.cursor}`);
    expect(second.body.result).toHaveLength(2);
    expect(second.body.result_info).toEqual({ count: 2, cursor: null, cursors: {} });
    expect(second.body.result[1].last_used_at).toBe(new Date(now).toISOString());
    expect(second.body.result[0].last_used_at).toBeNull();
  });

  it("accounts, tokens, revocations and times of last use survive a restart", async () => {
    const first = await startTestServer({ dataDir: join(server.dataDir, "restart") });
    const kept = await first.token(["tokens.edit", "tags.read"]);
    const { body } = await first.api("POST", "/accounts/default/tokens", {
      name: "gone",
      permissions: ["tags.read"],
    });
    await first.api("DELETE", `/accounts/default/tokens/${body.result.id}`, undefined, kept);
    await first.api("POST", "/accounts", { id: "lasting" });
    await first.stop();
    const second = await startTestServer({ dataDir: join(server.dataDir, "restart") });
    const list = await second.api("GET", "/accounts/default/tokens", undefined, kept);
    expect(list.body.result.map((token: { name: string }) => token.name)).toEqual(["test"]);
    expect(list.body.result[0].last_used_at).not.toBeNull();
    expect((await second.api("GET", "/accounts/default", undefined, body.result.token)).status).toBe(401);
    expect((await second.api("GET", "/accounts/lasting")).status).toBe(200);
    await second.stop();
  });
});
