/** Cache, rate limits and spend limits of a gateway. */
import type { ServerResponse } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ProviderPeer, sendEvents, sendJson, startProvider } from "../peers/provider.ts";
import { CHAT, post, readLogs, setGateway } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const OFF = {
  cache_ttl: null,
  cache_invalidate_on_update: false,
  rate_limiting_limit: null,
  rate_limiting_interval: null,
  spend_limits: null,
  trust_custom_cost: false,
  byok_only: false,
};

let provider: ProviderPeer;
let server: TestServer;
// Far from the edge of a window, so that no test crosses an edge by accident.
let now = Date.UTC(2030, 0, 1, 12, 0, 1);
let answers = 0;
beforeAll(async () => {
  provider = await startProvider(() => undefined);
  server = await startTestServer({
    file: {
      providers: { openai: { baseUrl: provider.url } },
      gateway: {
        prices: { openai: { "gpt-4o-mini": { in: 1_000_000, out: 1_000_000 } } },
      },
    },

    clock: { now: () => now },
  });
});
afterAll(async () => {
  await server.stop();
  await provider.close();
});
beforeEach(async () => {
  provider.requests.length = 0;
  provider.answer = (_, response) => sendJson(response, 200, { n: ++answers });
  // A new window for each test, also for a second try.
  now += 7_200_000;
  await setGateway(server, OFF);
});

const call = (headers: Record<string, string> = {}, body = CHAT) =>
  post(server, "openai/chat/completions", { body, headers: { authorization: "Bearer a", ...headers } });

describe("the cache", () => {
  const unique = () => JSON.stringify({ model: "gpt-4o-mini", messages: [], n: ++answers });

  it("the cache is off unless the gateway or the call enables it", async () => {
    const body = unique();
    expect((await call({}, body)).headers["gw-aig-cache-status"]).toBeUndefined();
    await call({}, body);
    expect(provider.requests).toHaveLength(2);
  });

  it("a repeated request is answered from the cache until the entry expires", async () => {
    await setGateway(server, { cache_ttl: 60 });
    const body = unique();
    const missed = await call({}, body);
    const hit = await call({}, body);
    expect(missed.headers["gw-aig-cache-status"]).toBe("MISS");
    expect(hit.headers["gw-aig-cache-status"]).toBe("HIT");
    expect(hit).toMatchObject({ status: 200, body: missed.body });
    expect(hit.headers["content-type"]).toBe("application/json");
    expect(hit.headers["gw-aig-log-id"]).not.toBe(missed.headers["gw-aig-log-id"]);
    expect(provider.requests).toHaveLength(1);
    expect((await readLogs(server))[0]).toMatchObject({ cached: true, cost: 0, success: true });
    now += 60_000;
    expect((await call({}, body)).headers["gw-aig-cache-status"]).toBe("MISS");
  });

  it("the cache key covers every part of the request", async () => {
    await setGateway(server, { cache_ttl: 60 });
    const body = unique();
    await call({}, body);
    for (const other of [
      () => call({}, unique()),
      () => post(server, "openai/chat/completions?x=1", { body, headers: { authorization: "Bearer a" } }),
      () => post(server, "openai/responses", { body, headers: { authorization: "Bearer a" } }),
    ]) {
      expect((await other()).headers["gw-aig-cache-status"]).toBe("MISS");
    }
  });

  it("callers with different provider credentials do not share entries, even with the same custom key", async () => {
    await setGateway(server, { cache_ttl: 60 });
    const body = unique();
    await call({}, body);
    expect((await call({ authorization: "Bearer b" }, body)).headers["gw-aig-cache-status"]).toBe("MISS");
    const key = { "gw-aig-cache-key": `shared-${answers}` };
    await call(key, unique());
    expect((await call({ ...key, authorization: "Bearer b" }, unique())).headers["gw-aig-cache-status"]).toBe(
      "MISS",
    );
    expect((await call(key, unique())).headers["gw-aig-cache-status"]).toBe("HIT");
  });

  it("a call can skip, time and enable the cache", async () => {
    const body = unique();
    const timed = { "gw-aig-cache-ttl": "5" };
    await call(timed, body);
    expect((await call(timed, body)).headers["gw-aig-cache-status"]).toBe("HIT");
    expect(
      (await call({ ...timed, "cf-aig-skip-cache": "true" }, body)).headers["gw-aig-cache-status"],
    ).toBeUndefined();
    now += 5000;
    expect((await call(timed, body)).headers["gw-aig-cache-status"]).toBe("MISS");
  });

  it("errors and incomplete or oversized responses are not cached", async () => {
    await setGateway(server, { cache_ttl: 60 });
    for (const answer of [
      (response: ServerResponse) => sendJson(response, 500, {}),
      (response: ServerResponse) => sendJson(response, 201, {}),
      (response: ServerResponse) => sendJson(response, 200, { text: "x".repeat(1024 * 1024) }),
    ]) {
      provider.answer = (_, response) => answer(response);
      const body = unique();
      await call({}, body);
      expect((await call({}, body)).headers["gw-aig-cache-status"]).toBe("MISS");
    }
  });

  it("a cached stream is replayed", async () => {
    await setGateway(server, { cache_ttl: 60 });
    provider.answer = (_, response) => sendEvents(response, ["data: 1\n\n", "data: 2\n\n"]);
    const body = unique();
    const missed = await call({}, body);
    const hit = await call({}, body);
    expect(hit.headers["gw-aig-cache-status"]).toBe("HIT");
    expect(hit.body).toBe(missed.body);
    expect(hit.headers["content-type"]).toContain("text/event-stream");
  });

  it("concurrent identical misses are sent upstream once", async () => {
    await setGateway(server, { cache_ttl: 60 });
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    provider.answer = async (_, response) => {
      await released;
      sendJson(response, 200, { n: ++answers });
    };
    const body = unique();
    const calls = Array.from({ length: 20 }, () => call({}, body));
    await expect.poll(() => provider.requests.length).toBe(1);
    release();
    const results = await Promise.all(calls);
    expect(provider.requests).toHaveLength(1);
    expect(new Set(results.map((result) => result.body)).size).toBe(1);
    expect(results.filter((result) => result.headers["gw-aig-cache-status"] === "HIT")).toHaveLength(19);
  });

  it("waiting callers continue if the caller whose request went upstream leaves or fails", async () => {
    await setGateway(server, { cache_ttl: 60 });
    const body = unique();
    provider.answer = () => undefined;
    const controller = new AbortController();
    const leader = fetch(`${server.url}/v1/default/default/openai/chat/completions`, {
      method: "POST",
      body,
      headers: { "content-type": "application/json", authorization: "Bearer a" },
      signal: controller.signal,
    }).catch(() => null);
    await expect.poll(() => provider.requests.length).toBe(1);
    const followers = [call({}, body), call({}, body)];
    provider.answer = (_, response) => sendJson(response, 200, { n: ++answers });
    controller.abort();
    await leader;
    const statuses = (await Promise.all(followers)).map((result) => result.headers["gw-aig-cache-status"]);
    expect(new Set(statuses)).toEqual(new Set(["HIT", "MISS"]));
    expect(provider.requests).toHaveLength(2);
  });

  it("a change of settings empties the cache if the gateway is configured so", async () => {
    const body = unique();
    for (const [invalidates, expected] of [
      [false, "HIT"],
      [true, "MISS"],
    ] as const) {
      await setGateway(server, { cache_ttl: 60, cache_invalidate_on_update: invalidates });
      await call({}, body);
      await setGateway(server, { retry_delay: 100 });
      expect((await call({}, body)).headers["gw-aig-cache-status"]).toBe(expected);
    }
  });

  it.each(["0", "-1", "1.5", "2592001", "x"])("a cache TTL of %s is refused", async (ttl) => {
    expect(JSON.parse((await call({ "gw-aig-cache-ttl": ttl })).body)).toMatchObject({ internalCode: 2002 });
  });
});

describe("the rate limit", () => {
  const limited = { code: 2003, message: "Rate limited" };

  it.each(["fixed", "sliding"])(
    "the limit admits exactly the configured number of concurrent calls (%s)",
    async (technique) => {
      await setGateway(server, {
        rate_limiting_limit: 7,
        rate_limiting_interval: 60,
        rate_limiting_technique: technique,
      });
      const results = await Promise.all(Array.from({ length: 40 }, () => call()));
      expect(results.filter(({ status }) => status === 200)).toHaveLength(7);
      const refused = results.filter(({ status }) => status === 429);
      expect(refused).toHaveLength(33);
      expect(JSON.parse(refused[0]?.body ?? "")).toMatchObject({ error: [limited] });
      expect(Number(refused[0]?.headers["retry-after"])).toBeGreaterThan(0);
      expect(Number(refused[0]?.headers["retry-after"])).toBeLessThanOrEqual(60);
      expect(provider.requests).toHaveLength(7);
    },
  );

  it("a fixed window starts again with the next interval", async () => {
    await setGateway(server, {
      rate_limiting_limit: 1,
      rate_limiting_interval: 60,
      rate_limiting_technique: "fixed",
    });
    now = Math.ceil(now / 60_000) * 60_000 + 59_000;
    expect((await call()).status).toBe(200);
    const refused = await call();
    expect(refused.status).toBe(429);
    expect(refused.headers["retry-after"]).toBe("1");
    now += 1000;
    expect((await call()).status).toBe(200);
  });

  it("a sliding window counts the whole last interval", async () => {
    await setGateway(server, {
      rate_limiting_limit: 1,
      rate_limiting_interval: 60,
      rate_limiting_technique: "sliding",
    });
    now = Math.ceil(now / 60_000) * 60_000 + 59_000;
    expect((await call()).status).toBe(200);
    now += 1000;
    expect((await call()).status).toBe(429);
    now += 59_000;
    expect((await call()).status).toBe(200);
  });

  it("a change of another setting does not reset the limit", async () => {
    await setGateway(server, {
      rate_limiting_limit: 2,
      rate_limiting_interval: 3600,
      rate_limiting_technique: "fixed",
    });
    await call();
    await setGateway(server, { retry_delay: 5 });
    await call();
    expect((await call()).status).toBe(429);
  });

  it("the limit counts calls of one gateway", async () => {
    await server.api("POST", "/accounts/default/ai-gateway/gateways", { id: "free" });
    await setGateway(server, { rate_limiting_limit: 1, rate_limiting_interval: 86_400 });
    await call();
    expect((await call()).status).toBe(429);
    expect((await post(server, "openai/chat/completions", { gateway: "free" })).status).toBe(200);
  });
});

describe("spend limits", () => {
  const USAGE = { prompt_tokens: 1, completion_tokens: 1 };
  /** One dollar per token, so two dollars per call. */
  const bounded = JSON.stringify({ model: "gpt-4o-mini", max_tokens: 1, m: 1 });
  const rule = (change: object = {}) => ({ id: "r", limitType: "cost", limit: 20, window: 3600, ...change });
  const set = (...rules: object[]) =>
    setGateway(server, { spend_limits: { enabled: true, rules }, trust_custom_cost: true });

  beforeEach(() => {
    now += 7_200_000;
    provider.answer = (_, response) => sendJson(response, 200, { model: "gpt-4o-mini", usage: USAGE });
  });

  it("calls are refused with 2041 when the window's budget is spent, and served again in the next window", async () => {
    await set(rule({ id: "small", limit: 4 }));
    const custom = { "gw-aig-custom-cost": '{"total_cost":2}' };
    expect((await call(custom)).status).toBe(200);
    expect((await call(custom)).status).toBe(200);
    const refused = await call(custom);
    expect(refused.status).toBe(429);
    expect(JSON.parse(refused.body)).toMatchObject({
      internalCode: 2041,
      message: expect.stringContaining("rule small allows $4 per 3600 s") as string,
    });
    // Until the end of the window.
    const waitMs = 3_600_000 - (now % 3_600_000);
    expect(refused.headers["retry-after"]).toBe(String(Math.ceil(waitMs / 1000)));
    now += waitMs - 1;
    expect((await call(custom)).status).toBe(429);
    now += 1;
    expect((await call(custom)).status).toBe(200);
  });

  it("concurrent calls do not exceed the limit", async () => {
    await set(rule({ id: "together", limit: 60 }));
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    provider.answer = async (_, response) => {
      await released;
      sendJson(response, 200, { model: "gpt-4o-mini", usage: USAGE });
    };
    // Each call reserves the price of its input (44 bytes are 15 tokens) and of one output token.
    let refused = 0;
    const calls = Array.from({ length: 20 }, async () => {
      const { status } = await call({}, bounded);
      if (status === 429) refused += 1;
      return status;
    });
    // While three calls reserve 48 of the 60 dollars, all other calls must be refused.
    await expect.poll(() => refused).toBe(17);
    release();
    expect((await Promise.all(calls)).filter((status) => status === 200)).toHaveLength(3);
    // The reserved amount above the actual price is released.
    expect((await call({}, bounded)).status).toBe(200);
  });

  it("a call of unknown length is admitted while no other call runs", async () => {
    await set(rule({ id: "alone", limit: 3 }));
    expect((await call()).status).toBe(200);
    expect((await call()).status).toBe(200);
    expect((await call()).status).toBe(429);
  });

  it("spending is counted per provider, model and metadata as the rule says", async () => {
    const cost = { "gw-aig-custom-cost": '{"total_cost":1}' };
    const by = (user: string) => ({ ...cost, "gw-aig-metadata": JSON.stringify({ user }) });
    await set(
      rule({ id: "per-user", limit: 1, metadata: { user: { mode: "partition" } } }),
      rule({ id: "other", limit: 0.1, provider: { mode: "filter", values: ["groq"] } }),
      rule({ id: "model", limit: 0.1, model: { mode: "filter", values: ["gpt-9"] } }),
      rule({ id: "vip", limit: 0.5, metadata: { user: { mode: "filter", values: ["vip"] } } }),
    );
    expect((await call(by("ann"))).status).toBe(200);
    expect((await call(by("ann"))).status).toBe(429);
    expect((await call(by("bob"))).status).toBe(200);
    expect((await call(by("vip"))).status).toBe(429);
  });

  it("calls with an unknown price are refused with 2042, allowed or priced, as the setting says", async () => {
    const body = JSON.stringify({ model: "no-such-model-anywhere", max_tokens: 1 });
    const rules = [rule({ id: "unknown", limit: 100 })];
    await set(...rules);
    const refused = await call({}, body);
    expect(refused.status).toBe(429);
    expect(JSON.parse(refused.body)).toMatchObject({
      internalCode: 2042,
      message: expect.stringContaining("openai/no-such-model-anywhere") as string,
    });
    expect(refused.headers["retry-after"]).toBeUndefined();
    await setGateway(server, { spend_limits: { rules, unknown_price: "allow" } });
    expect((await call({}, body)).headers["gw-aig-budget-remaining"]).toBe("100");
    await setGateway(server, { spend_limits: { rules, unknown_price: { in: 1_000_000, out: 1_000_000 } } });
    expect((await call({}, body)).headers["gw-aig-budget-remaining"]).toBe("98");
  });

  it("the spent amount survives a restart", async () => {
    const file = { providers: { openai: { baseUrl: provider.url } } };
    const custom = { "gw-aig-custom-cost": '{"total_cost":1}' };
    const before = await startTestServer({ file, clock: { now: () => now } });
    const limits = {
      spend_limits: { rules: [rule({ limit: 1, technique: "sliding" })] },
      trust_custom_cost: true,
    };
    await setGateway(before, limits);
    expect((await post(before, "openai/chat/completions", { headers: custom })).status).toBe(200);
    await before.service.stop();
    const after = await startTestServer({ file, clock: { now: () => now }, dataDir: before.dataDir });
    expect((await post(after, "openai/chat/completions", { headers: custom })).status).toBe(429);
    await after.stop();
    await before.stop();
  });
});

describe("provider credentials", () => {
  const bare = (slug = "openai") => post(server, `${slug}/chat/completions`);

  it("are not required unless the gateway says so: the provider decides", async () => {
    expect((await bare()).status).toBe(200);
  });

  it("are required with byok_only: a call without any is refused, and not sent", async () => {
    await setGateway(server, { byok_only: true });
    const refused = await bare();
    expect(refused.status).toBe(400);
    expect(JSON.parse(refused.body)).toMatchObject({ success: false, error: [{ code: 2047 }] });
    expect(provider.requests).toEqual([]);
    expect((await call()).status).toBe(200);
    // A provider inside the process has no credential.
    expect((await bare("echo")).status).toBe(200);
  });
});

describe("the id of a call", () => {
  it("is in every response, also that of the cache and that of a call without a row", async () => {
    const body = JSON.stringify({ model: "gpt-4o-mini", messages: [], n: ++answers });
    const ids = new Set<unknown>();
    for (const headers of [{ "gw-aig-cache-ttl": "60" }, { "gw-aig-cache-ttl": "60" }, {}]) {
      const answer = await call(headers, body);
      expect(answer.headers["gw-aig-request-id"]).toBe(answer.headers["gw-aig-log-id"]);
      ids.add(answer.headers["gw-aig-request-id"]);
    }
    expect(ids.size).toBe(3);
    const unlogged = (await call({ "gw-aig-collect-log": "false" }, body)).headers;
    expect(unlogged["gw-aig-request-id"]).toMatch(/^[0-9A-Z]{26}$/);
    expect(unlogged["gw-aig-log-id"]).toBeUndefined();
  });
});
