/** Provider keys that the service stores: the `cloudflare` SDKs, SDKs with only a Signalbox token as their key, pools, and accounts. */
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import Cloudflare from "cloudflare";
import CloudflareSix from "cloudflare-6";
import OpenAI from "openai";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { anthropic, ANTHROPIC_KEY } from "../peers/anthropic.ts";
import { gemini, GEMINI_KEY } from "../peers/gemini.ts";
import { openAi, OPENAI_KEY } from "../peers/openai.ts";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { post, setGateway } from "../support/gateway.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

const account_id = "default";
const PATH = "/accounts/default/ai-gateway/gateways/default/provider_configs";
let peers: ProviderPeer[];
let pooled: ProviderPeer;
let server: TestServer;
let token: string;
let folder: string;
let now = Date.now();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-secrets-"));
  peers = await Promise.all([openAi, anthropic, gemini].map((answer) => startProvider(answer)));
  pooled = await startProvider((_, response) => sendJson(response, 200, { ok: true }));
  const [one, two, three] = peers.map(({ url }) => ({ baseUrl: url }));
  server = await startTestServer({
    file: {
      providers: {
        openai: one ?? { baseUrl: "" },
        anthropic: two ?? { baseUrl: "" },
        "google-ai-studio": three ?? { baseUrl: "" },
        mistral: { baseUrl: pooled.url },
      },
      gateway: { secretFolder: folder },
    },
    environment: { MISTRAL_API_KEY_ENV: "key-of-the-environment" },
    clock: { now: () => now },
  });
  await setGateway(server, { authentication: true });
  token = await server.token(["gateway.run"]);
});
afterAll(async () => {
  await server.stop();
  for (const peer of [...peers, pooled]) await peer.close();
  await rm(folder, { recursive: true, force: true });
});

interface Key {
  readonly id: string;
  readonly alias: string;
  readonly status: string;
  readonly cooldown_until: string | null;
  readonly last_used_at: string | null;
}

const api = async (method: string, path: string, body?: object) => {
  const answer = await server.api(method, path, body);
  expect([path, answer.status]).toEqual([path, 200]);
  return (answer.body as { result: unknown }).result;
};
const create = async (body: object, path = PATH) => (await api("POST", path, body)) as Key;
const list = async (path = PATH) => (await api("GET", `${path}?per_page=50`)) as Key[];

describe.each([
  ["cloudflare", () => new Cloudflare({ apiToken: ROOT_TOKEN, baseURL: server.url, maxRetries: 0 })],
  ["cloudflare-6", () => new CloudflareSix({ apiToken: ROOT_TOKEN, baseURL: server.url, maxRetries: 0 })],
])("the %s SDK", (name, client) => {
  it("stores a key and lists it with its last four characters", async () => {
    const { providerConfigs } = client().aiGateway;
    const made = await providerConfigs.create("default", {
      account_id,
      alias: name,
      default_config: false,
      provider_slug: "groq",
      secret: `gsk-of-${name}-a1b2`,
      rate_limit: 10,
      rate_limit_period: 60,
    });
    expect(made).toMatchObject({
      alias: name,
      default_config: false,
      gateway_id: "default",
      provider_slug: "groq",
      secret_preview: "…a1b2",
      rate_limit: 10,
      rate_limit_period: 60,
    });
    const found: unknown[] = [];
    for await (const one of providerConfigs.list("default", { account_id })) found.push(one);
    expect(found).toContainEqual(expect.objectContaining({ id: made.id, secret_preview: "…a1b2" }));
    expect(JSON.stringify(found)).not.toContain(`gsk-of-${name}`);
    // The SDKs have no methods for the rest.
    await api("PATCH", `${PATH}/${made.id}`, { secret: `gsk-of-${name}-c3d4`, weight: 3 });
    expect(await api("GET", `${PATH}/${made.id}`)).toMatchObject({ secret_preview: "…c3d4", weight: 3 });
    await api("DELETE", `${PATH}/${made.id}`);
    expect((await list()).map(({ id }) => id)).not.toContain(made.id);
  });
});

describe("an SDK with only a Signalbox token as its key", () => {
  const base = () => `${server.url}/v1/default/default`;
  beforeAll(async () => {
    for (const [provider_slug, secret] of [
      ["openai", OPENAI_KEY],
      ["anthropic", ANTHROPIC_KEY],
      ["google-ai-studio", GEMINI_KEY],
    ]) {
      await create({ provider_slug, secret });
    }
  });

  it("openai: the call is served with the stored key", async () => {
    const client = new OpenAI({ baseURL: `${base()}/openai`, apiKey: token, maxRetries: 0 });
    const completion = await client.chat.completions.create({
      model: "gpt-4o-mini",
      messages: [{ role: "user", content: "Hello" }],
    });
    expect(completion.choices[0]?.message.content).toBe("Hello there");
    expect(JSON.stringify(peers[0]?.requests)).not.toContain(token);
  });

  it("anthropic: the call is served with the stored key, as apiKey and as authToken", async () => {
    for (const key of [{ apiKey: token }, { authToken: token, apiKey: null }]) {
      const client = new Anthropic({ baseURL: `${base()}/anthropic`, ...key, maxRetries: 0 });
      const message = await client.messages.create({
        model: "claude-sonnet-4-5",
        max_tokens: 10,
        messages: [{ role: "user", content: "Hello" }],
      });
      expect(message.content[0]).toMatchObject({ type: "text" });
    }
    expect(JSON.stringify(peers[1]?.requests)).not.toContain(token);
  });

  it("google: the call is served with the stored key", async () => {
    const client = new GoogleGenAI({
      apiKey: token,
      httpOptions: { baseUrl: `${base()}/google-ai-studio` },
    });
    const response = await client.models.generateContent({ model: "gemini-2.5-flash", contents: "Hello" });
    expect(response.text).toBeTruthy();
    expect(JSON.stringify(peers[2]?.requests)).not.toContain(token);
  });
});

describe("a pool", () => {
  let ids: Record<string, string>;
  const call = (headers: Record<string, string> = {}, model = "m") =>
    post(server, "mistral/chat/completions", {
      headers: { "gw-aig-authorization": `Bearer ${token}`, ...headers },
      body: JSON.stringify({ model, messages: [] }),
    });
  const sent = () => pooled.requests.map(({ headers }) => headers.authorization?.replace("Bearer ", ""));
  const statuses = async () =>
    Object.fromEntries(
      (await list()).map(({ id, status }) => [Object.keys(ids).find((name) => ids[name] === id), status]),
    );
  const answers = (by: Record<string, number>, headers: Record<string, string> = {}) => {
    pooled.answer = ({ headers: { authorization = "" } }, response) =>
      sendJson(response, by[authorization.replace("Bearer ", "")] ?? 200, {}, headers);
  };

  beforeEach(async () => {
    for (const { id } of await list()) await api("DELETE", `${PATH}/${id}`);
    ids = {};
    for (const name of ["one", "two", "three"]) {
      ids[name] = (await create({ provider_slug: "mistral", secret: `key-number-${name}` })).id;
    }
    pooled.requests.length = 0;
    answers({});
  });

  it("spreads calls by weight, and a session keeps its key", async () => {
    await api("PATCH", `${PATH}/${ids["one"]}`, { weight: 1000 });
    for (let i = 0; i < 20; i++) await call();
    expect(sent().filter((key) => key === "key-number-one").length).toBeGreaterThan(15);
    await api("PATCH", `${PATH}/${ids["one"]}`, { weight: 1 });
    const used = new Set<string | undefined>();
    for (let session = 0; session < 12; session++) {
      pooled.requests.length = 0;
      for (let i = 0; i < 3; i++) await call({ "gw-aig-session-id": `s-${session}` });
      expect(new Set(sent()).size).toBe(1);
      used.add(sent()[0]);
    }
    expect(used.size).toBeGreaterThan(1);
  });

  it("a 429 moves on to the next key within the attempt, and the key cools as long as the provider says", async () => {
    // One of 500 random choices is another key: of twelve calls one surely has it.
    await api("PATCH", `${PATH}/${ids["one"]}`, { weight: 1000 });
    answers({ "key-number-one": 429 }, { "retry-after": "120" });
    for (let i = 0; i < 12; i++) expect((await call()).status).toBe(200);
    expect(sent().filter((key) => key === "key-number-one")).toHaveLength(1);
    await api("PATCH", `${PATH}/${ids["two"]}`, { disabled: true });
    await api("PATCH", `${PATH}/${ids["three"]}`, { disabled: true });
    const refused = await call();
    expect(refused.status).toBe(429);
    expect(JSON.parse(refused.body)).toMatchObject({ internalCode: 2003 });
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(100);
    expect(await statuses()).toMatchObject({ one: "cooldown", two: "disabled" });
    now += 121_000;
    answers({});
    expect((await call()).status).toBe(200);
    expect(await statuses()).toMatchObject({ one: "active" });
  });

  it("without Retry-After a key cools 30 s, then twice as long, and all cooling is a 429 with the shortest time", async () => {
    answers({ "key-number-one": 429, "key-number-two": 429, "key-number-three": 429 });
    expect((await call()).status).toBe(429);
    expect(new Set(sent()).size).toBe(3);
    expect((await call()).headers["retry-after"]).toBe("30");
    now += 30_000;
    await call();
    expect((await call()).headers["retry-after"]).toBe("60");
    expect(pooled.requests).toHaveLength(6);
  });

  describe("with one key", () => {
    beforeEach(async () => {
      for (const name of ["two", "three"]) await api("DELETE", `${PATH}/${ids[name]}`);
    });
    /** 429 once for each of the models, then 200. */
    const limitOnce = (headers: Record<string, string>, body: object, models = ["m"]) => {
      const left = new Set(models);
      pooled.answer = ({ body: sentBody }, response) => {
        const { model } = JSON.parse(sentBody) as { model: string };
        if (left.delete(model)) sendJson(response, 429, body, headers);
        else sendJson(response, 200, { ok: true });
      };
    };

    it("closes the provider no longer than the provider names, and for the model only", async () => {
      limitOnce({}, {});
      expect((await call()).status).toBe(429);
      expect((await call()).status).toBe(200);
      limitOnce({ "retry-after": "120" }, {});
      expect((await call()).status).toBe(429);
      expect((await call({}, "another")).status).toBe(200);
      expect((await call()).headers["retry-after"]).toBe("120");
      expect(await statuses()).toEqual({ one: "cooldown" });
      now += 120_000;
      expect((await call()).status).toBe(200);
      expect(await statuses()).toEqual({ one: "active" });
    });

    it("closes it for the time in the details of an error of Google", async () => {
      const details = [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "41s" }];
      limitOnce({}, { error: { code: 429, status: "RESOURCE_EXHAUSTED", details } });
      expect((await call()).status).toBe(429);
      expect((await call()).headers["retry-after"]).toBe("41");
    });
  });

  it("a 401 makes a key invalid until it is edited", async () => {
    // One of 500 random choices is another key: of twelve calls one surely has it.
    await api("PATCH", `${PATH}/${ids["one"]}`, { weight: 1000 });
    answers({ "key-number-one": 401 });
    for (let i = 0; i < 12; i++) expect((await call()).status).toBe(200);
    expect(sent().filter((key) => key === "key-number-one")).toHaveLength(1);
    now += 3_600_000;
    await call();
    expect(await statuses()).toEqual({ one: "invalid", two: "active", three: "active" });
    await api("PATCH", `${PATH}/${ids["one"]}`, { secret: "key-number-four" });
    expect(await statuses()).toMatchObject({ one: "active" });
    pooled.requests.length = 0;
    for (let i = 0; i < 30; i++) await call();
    expect(sent()).toContain("key-number-four");
  });

  it("a 403 of a key that has never worked makes it invalid; later it concerns one model only", async () => {
    answers({ "key-number-one": 403, "key-number-two": 403, "key-number-three": 403 });
    expect((await call()).status).toBe(403);
    expect(await statuses()).toEqual({ one: "invalid", two: "invalid", three: "invalid" });
    for (const id of Object.values(ids)) await api("PATCH", `${PATH}/${id}`, { secret: `key-again-${id}` });
    answers({});
    for (let i = 0; i < 40; i++) await call();
    pooled.answer = ({ body }, response) => sendJson(response, body.includes("forbidden") ? 403 : 200, {});
    expect((await call({}, "forbidden")).status).toBe(403);
    expect(await statuses()).toEqual({ one: "active", two: "active", three: "active" });
    expect((await call()).status).toBe(200);
    expect((await call({}, "forbidden")).status).toBe(400);
  });

  it("an alias names one key, and models and rate limits apply to each key", async () => {
    await create({ provider_slug: "mistral", secret: "key-by-alias", alias: "named", default_config: false });
    await call({ "gw-aig-byok-alias": "named" });
    expect(sent()).toEqual(["key-by-alias"]);
    for (const id of Object.values(ids)) await api("DELETE", `${PATH}/${id}`);
    ids = {};
    await create({ provider_slug: "mistral", secret: "key-for-small", models: ["small-*"], rate_limit: 2 });
    pooled.requests.length = 0;
    expect((await call({}, "large")).status).toBe(400);
    expect((await call({}, "small-1")).status).toBe(200);
    expect((await call({}, "SMALL-2")).status).toBe(200);
    expect((await call({}, "small-3")).headers["retry-after"]).toBe("60");
    now += 60_000;
    expect((await call({}, "small-3")).status).toBe(200);
    expect(sent()).toEqual(["key-for-small", "key-for-small", "key-for-small"]);
  });

  it("keys of the account serve gateways without their own, and a fallback step follows a pool without a key", async () => {
    for (const id of Object.values(ids)) await api("DELETE", `${PATH}/${id}`);
    ids = {};
    const shared = await create(
      { provider_slug: "mistral", secret: "key-of-the-account" },
      "/accounts/default/ai-gateway/provider_configs",
    );
    expect(shared).toMatchObject({ gateway_id: null });
    await call();
    await create({ provider_slug: "mistral", secret: "key-of-the-gateway" });
    await call();
    expect(sent()).toEqual(["key-of-the-account", "key-of-the-gateway"]);
    answers({ "key-of-the-gateway": 429 });
    const step = {
      provider: "mistral",
      endpoint: "chat/completions",
      query: { model: "m", messages: [{ role: "user", content: "x" }] },
    };
    const echo = { ...step, provider: "echo" };
    for (let i = 0; i < 2; i++) {
      const answer = await fetch(`${server.url}/v1/default/default`, {
        method: "POST",
        headers: { "gw-aig-authorization": `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify([step, echo]),
      });
      expect([answer.status, answer.headers.get("gw-aig-step")]).toEqual([200, "1"]);
    }
  });

  it("variables and files are named by secret_id, and a file is read again when it changes", async () => {
    for (const id of Object.values(ids)) await api("DELETE", `${PATH}/${id}`);
    ids = {};
    await create({ provider_slug: "mistral", secret_id: "env:MISTRAL_API_KEY_ENV", alias: "variable" });
    const file = join(folder, "mistral_api_key");
    await writeFile(file, "key-in-a-file\n");
    const made = await create({ provider_slug: "mistral", secret_id: `file:${file}`, alias: "file" });
    await call({ "gw-aig-byok-alias": "variable" });
    await call({ "gw-aig-byok-alias": "file" });
    expect(sent()).toEqual(["key-of-the-environment", "key-in-a-file"]);
    answers({ "key-in-a-file": 401 });
    expect((await call({ "gw-aig-byok-alias": "file" })).status).toBe(401);
    expect((await call({ "gw-aig-byok-alias": "file" })).status).toBe(400);
    // All keys are read again.
    await create({ provider_slug: "mistral", secret: "key-of-somebody-else", alias: "other" });
    await writeFile(file, "another-key-in-the-file\n");
    now += 2000;
    expect((await call({ "gw-aig-byok-alias": "file" })).status).toBe(200);
    expect(sent().at(-1)).toBe("another-key-in-the-file");
    // What was read can be written back.
    expect(
      await api("PATCH", `${PATH}/${made.id}`, (await api("GET", `${PATH}/${made.id}`)) as object),
    ).toMatchObject({ secret_id: `file:${file}` });
  });
});

describe("a retry with the only key", () => {
  let real: TestServer;
  beforeAll(async () => {
    // The call waits in real time.
    real = await startTestServer({ file: { providers: { mistral: { baseUrl: pooled.url } } } });
    const made = await real.api("POST", PATH, { provider_slug: "mistral", secret: "key-number-one" });
    expect(made.status).toBe(200);
  });
  afterAll(() => real.stop());

  const details = [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "0.02s" }];
  it.each([
    ["in a header", { "retry-after-ms": "20" }, {}],
    ["in the body", {}, { error: { code: 429, details } }],
    ["nowhere", {}, {}],
  ])("after a 429 that names its time %s uses the key again", async (_, headers, body) => {
    pooled.requests.length = 0;
    pooled.answer = (__, response) => {
      if (pooled.requests.length === 1) sendJson(response, 429, body, headers);
      else sendJson(response, 200, { ok: true });
    };
    const answer = await post(real, "mistral/chat/completions", {
      headers: { "gw-aig-authorization": `Bearer ${ROOT_TOKEN}`, "gw-aig-max-attempts": "3" },
      body: JSON.stringify({ model: "m", messages: [] }),
    });
    expect([answer.status, answer.body]).toEqual([200, '{"ok":true}']);
    expect(pooled.requests).toHaveLength(2);
  });
});
