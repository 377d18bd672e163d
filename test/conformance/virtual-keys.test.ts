/** Tokens as virtual keys: their members, changes, rotation, disabling, lists and usage. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ProviderPeer } from "../peers/provider.ts";
import { sendJson } from "../peers/provider.ts";
import { CHAT, post, setGateway, startWithProvider } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const TOKENS = "/accounts/default/tokens";
let provider: ProviderPeer;
let server: TestServer;
let stop: () => Promise<void>;
let now = Date.now();
beforeAll(async () => {
  ({ provider, server, stop } = await startWithProvider((at) => ({
    file: { providers: { openai: at } },
    clock: { now: () => now },
  })));
  await setGateway(server, { authentication: true });
  provider.answer = (_, response) =>
    sendJson(response, 200, { model: "gpt-4o-mini", usage: { prompt_tokens: 10, completion_tokens: 5 } });
});
afterAll(() => stop());

const FULL = {
  budgets: [
    { limit: 10, window: "month", reset: "fixed", timezone: "Europe/Berlin" },
    { limit: 1, window: 3600, reset: "sliding", timezone: "UTC" },
    { limit: 100, window: null, reset: "fixed", timezone: "UTC" },
  ],
  soft_budget: { limit: 8, window: "month", reset: "fixed", timezone: "UTC" },
  rate_limits: [
    { type: "requests", limit: 60, interval: 60 },
    { type: "tokens", limit: 100_000, interval: 60 },
    { type: "parallel", limit: 4, interval: null },
  ],
  models: ["openai/gpt-*", "!*/gpt-4"],
  providers: ["openai"],
  routes: ["chat", "models"],
  guardrails: [
    {
      id: "keys",
      type: "secrets",
      kinds: ["key"],
      on: ["prompt"],
      action: "block",
      on_failure: "allow",
      allow: [],
      enabled: true,
    },
  ],
  metadata: { team: "search", level: 2, trial: false, note: null },
  owner: "alice@example.com",
  tags: { team: "search" },
  disabled: false,
};

interface Made {
  readonly id: string;
  readonly token: string;
}

const create = async (fields: object = {}, path = TOKENS) => {
  const { status, body } = await server.api("POST", path, {
    name: "key",
    ...(path === TOKENS ? { permissions: ["gateway.run"] } : {}),
    ...fields,
  });
  expect(status).toBe(200);
  return (body as { result: Made & Record<string, unknown> }).result;
};
const read = async (id: string) =>
  ((await server.api("GET", `${TOKENS}/${id}`)).body as { result: Record<string, unknown> }).result;
const status = async (token: string) =>
  (
    await post(server, "openai/chat/completions", {
      headers: { authorization: `Bearer ${token}` },
      body: CHAT,
    })
  ).status;

describe("members", () => {
  it.each([TOKENS, "/accounts/default/ai-gateway/gateways/default/tokens"])(
    "%s creates a token with all members, and a read shows them",
    async (path) => {
      const { id, token } = await create(FULL, path);
      expect(await read(id)).toMatchObject(FULL);
      expect(JSON.stringify(await read(id))).not.toContain(token);
      expect(await status(token)).toBe(200);
    },
  );

  it("members have defaults, and survive a restart", async () => {
    const dataServer = await startTestServer({});
    const made = await dataServer.api("POST", TOKENS, {
      name: "x",
      permissions: ["gateway.run"],
      budgets: [{ limit: 5, window: "day" }],
    });
    const { id } = (made.body as { result: Made }).result;
    const shown = {
      budgets: [{ limit: 5, window: "day", reset: "fixed", timezone: "UTC" }],
      soft_budget: null,
      rate_limits: [],
      models: [],
      providers: [],
      routes: [],
      guardrails: [],
      metadata: {},
      owner: null,
      tags: {},
      disabled: false,
      previous_expires_at: null,
    };
    expect(made.body.result).toMatchObject(shown);
    await dataServer.service.stop();
    const again = await startTestServer({ dataDir: dataServer.dataDir });
    expect((await again.api("GET", `${TOKENS}/${id}`)).body.result).toMatchObject(shown);
    await again.stop();
    await dataServer.stop();
  });

  it.each<[string, object]>([
    ["budgets.0.limit", { budgets: [{ limit: 0, window: "day" }] }],
    ["budgets.0.window", { budgets: [{ limit: 1, window: "year" }] }],
    ["budgets.0.window", { budgets: [{ limit: 1 }] }],
    ["budgets.0.timezone", { budgets: [{ limit: 1, window: "day", timezone: "Mars/Base" }] }],
    ["budgets", { budgets: [{ limit: 1, window: "day", reset: "sliding" }] }],
    ["budgets", { budgets: Array.from({ length: 2 }, () => ({ limit: 1, window: "day" })) }],
    ["rate_limits.0", { rate_limits: [{ type: "bytes", limit: 1, interval: 1 }] }],
    ["rate_limits.0.interval", { rate_limits: [{ type: "requests", limit: 1 }] }],
    ["rate_limits", { rate_limits: Array.from({ length: 2 }, () => ({ type: "parallel", limit: 1 })) }],
    ["models.0", { models: ["!"] }],
    ["models.0", { models: ["a b"] }],
    ["models.0", { models: ["x".repeat(300)] }],
    ["routes.0", { routes: ["chats"] }],
    ["metadata", { metadata: { "token.x": 1 } }],
    ["metadata.a", { metadata: { a: { b: 1 } } }],
    ["tags.a", { tags: { a: 1 } }],
    ["budget", { budget: 1 }],
  ])("%s is checked: %j", async (name, fields) => {
    const answer = await server.api("POST", TOKENS, { name: "x", permissions: ["gateway.run"], ...fields });
    expect(answer.status).toBe(400);
    expect((answer.body as { errors: { message: string }[] }).errors[0]?.message).toContain(name);
  });
});

describe("changes", () => {
  it("PATCH changes the named members only, and accepts what was read", async () => {
    const { id } = await create(FULL);
    const changed = await server.api("PATCH", `${TOKENS}/${id}`, {
      owner: null,
      models: [],
      name: "renamed",
    });
    expect(changed.body.result).toMatchObject({ ...FULL, owner: null, models: [], name: "renamed" });
    const before = await read(id);
    const written = await server.api("PATCH", `${TOKENS}/${id}`, before);
    expect([written.status, written.body.result]).toEqual([200, before]);
  });

  it.each<[string, object, number]>([
    ["permissions", { permissions: ["tags.edit"] }, 400],
    ["gateway_id", { gateway_id: "other" }, 400],
    ["an unknown member", { max_budget: 5 }, 400],
    ["a past expiry", { expires_at: "2020-01-01T00:00:00Z" }, 400],
  ])("%s cannot be set", async (_, body, expected) => {
    const { id } = await create();
    const before = await read(id);
    expect((await server.api("PATCH", `${TOKENS}/${id}`, body)).status).toBe(expected);
    expect(await read(id)).toEqual(before);
  });

  it("an unknown token is 404, and simultaneous changes do not overwrite each other", async () => {
    expect((await server.api("PATCH", `${TOKENS}/none`, { name: "x" })).status).toBe(404);
    const { id } = await create();
    await Promise.all([
      server.api("PATCH", `${TOKENS}/${id}`, { owner: "bob" }),
      server.api("PATCH", `${TOKENS}/${id}`, { models: ["a"] }),
      server.api("PATCH", `${TOKENS}/${id}`, { metadata: { a: 1 } }),
    ]);
    expect(await read(id)).toMatchObject({ owner: "bob", models: ["a"], metadata: { a: 1 } });
  });

  it("a disabled token is refused everywhere until it is enabled", async () => {
    const { id, token } = await create({ permissions: ["gateway.run", "gateway.read"] });
    await server.api("PATCH", `${TOKENS}/${id}`, { disabled: true });
    expect(await status(token)).toBe(401);
    const logs = "/accounts/default/ai-gateway/gateways/default/logs";
    expect((await server.api("GET", logs, undefined, token)).status).toBe(401);
    await server.api("PATCH", `${TOKENS}/${id}`, { disabled: false });
    expect(await status(token)).toBe(200);
  });

  it("lists are filtered by owner and gateway, and an unknown filter is refused", async () => {
    const { id } = await create({ owner: "carol" });
    await create({ owner: "carol" }, "/accounts/default/ai-gateway/gateways/default/tokens");
    const list = async (query: string) =>
      ((await server.api("GET", `${TOKENS}?${query}`)).body as { result: Made[] }).result;
    expect(await list("owner=carol")).toHaveLength(2);
    expect((await list("owner=carol&gateway_id=default")).map((one) => one.id)).not.toContain(id);
    expect(await list("owner=nobody")).toEqual([]);
    expect((await server.api("GET", `${TOKENS}?owners=carol`)).status).toBe(400);
  });
});

describe("rotation", () => {
  it("gives a new text at once; the old one is valid for the grace", async () => {
    const { id, token } = await create({ models: ["openai/*"] });
    const rotated = await server.api("POST", `${TOKENS}/${id}/rotate`, { grace_s: 60 });
    expect(rotated.headers.get("cache-control")).toBe("no-store");
    const next = (rotated.body as { result: Made & { previous_expires_at: string } }).result;
    expect(next).toMatchObject({
      id,
      models: ["openai/*"],
      previous_expires_at: new Date(now + 60_000).toISOString(),
    });
    expect([await status(token), await status(next.token)]).toEqual([200, 200]);
    now += 59_999;
    expect(await status(token)).toBe(200);
    now += 1;
    expect([await status(token), await status(next.token)]).toEqual([401, 200]);
  });

  it("without grace the old text is refused at once, and a second rotation ends an earlier grace", async () => {
    const { id, token } = await create();
    const rotate = async (body: object) =>
      ((await server.api("POST", `${TOKENS}/${id}/rotate`, body)).body as { result: Made }).result.token;
    const second = await rotate({ grace_s: 3600 });
    const third = await rotate({ grace_s: 3600 });
    expect(await Promise.all([token, second, third].map(status))).toEqual([401, 200, 200]);
    const fourth = await rotate({});
    expect(await Promise.all([second, third, fourth].map(status))).toEqual([401, 401, 200]);
    expect((await server.api("POST", `${TOKENS}/${id}/rotate`, { grace_s: -1 })).status).toBe(400);
    expect((await server.api("POST", `${TOKENS}/none/rotate`, {})).status).toBe(404);
  });

  it("revoking refuses both texts", async () => {
    const { id, token } = await create();
    const rotated = await server.api("POST", `${TOKENS}/${id}/rotate`, { grace_s: 600 });
    await server.api("DELETE", `${TOKENS}/${id}`);
    const next = (rotated.body as { result: Made }).result.token;
    expect([await status(token), await status(next)]).toEqual([401, 401]);
  });
});

describe("usage", () => {
  it("sums the calls of one token, by day, hour or model", async () => {
    const { id, token } = await create();
    const other = await create();
    for (let i = 0; i < 3; i++) await status(token);
    await status(other.token);
    now += 1000;
    const usage = async (query = "") =>
      (
        (await server.api("GET", `${TOKENS}/${id}/usage${query}`)).body as {
          result: Record<string, unknown>[];
        }
      ).result;
    expect(await usage()).toMatchObject([{ calls: 3, errors: 0, tokens_in: 30, tokens_out: 15 }]);
    expect((await usage())[0]?.["cost"]).toBeGreaterThan(0);
    expect(await usage("?group_by=day,model")).toMatchObject([
      { calls: 3, model: "gpt-4o-mini", day: expect.any(String) as string },
    ]);
    const past = new Date(now - 3_600_000).toISOString();
    expect(await usage(`?end=${past}`)).toEqual([]);
    expect((await server.api("GET", `${TOKENS}/none/usage`)).status).toBe(404);
    expect((await server.api("GET", `${TOKENS}/${id}/usage?days=1`)).status).toBe(400);
  });
});
