/** A cached response is never returned for another credential, or for the same credential in another scope. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { callPath, CHAT, post, send, setGateway } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let provider: ProviderPeer;
let server: TestServer;
let answers = 0;
beforeAll(async () => {
  provider = await startProvider((_, response) => sendJson(response, 200, { n: ++answers }));
  const at = { baseUrl: provider.url };
  server = await startTestServer({
    file: { providers: { openai: at, lab: at, "google-ai-studio": at, "azure-openai": at } },
    environment: { OPENAI_API_KEY_A: "sk-a", OPENAI_API_KEY_B: "sk-b" },
  });
  await setGateway(server, { allow_anonymous_keys: true });
});
afterAll(async () => {
  await server.stop();
  await provider.close();
});
beforeEach(() => {
  provider.answer = (_, response) => sendJson(response, 200, { n: ++answers });
});

const statusOf = async (path: string, headers: Record<string, string>, body = CHAT) =>
  (await post(server, path, { headers: { "gw-aig-cache-ttl": "3600", ...headers }, body })).headers[
    "gw-aig-cache-status"
  ];

describe.each([
  ["without a custom cache key", {}],
  ["with a custom cache key", { "gw-aig-cache-key": "shared" }],
])("%s", (kind, own) => {
  const named = (path: string) => `${path}${"gw-aig-cache-key" in own ? "-own" : ""}`;

  it.each([
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "x-auth-token",
    "openai-organization",
    "openai-project",
    "anthropic-version",
    "x-made-up-by-a-provider",
    "accept-language",
  ])("callers that differ in %s do not share a response", async (header) => {
    const path = named(`lab/differ/${header}`);
    expect(await statusOf(path, { ...own, [header]: "one" })).toBe("MISS");
    expect(await statusOf(path, { ...own, [header]: "one" })).toBe("HIT");
    expect(await statusOf(path, { ...own, [header]: "two" })).toBe("MISS");
    expect(await statusOf(path, own)).toBe("MISS");
  });

  it("callers that differ in the query do not share a response", async () => {
    const path = named("google-ai-studio/who");
    expect(await statusOf(`${path}?key=KEY-1`, own)).toBe("MISS");
    expect(await statusOf(`${path}?key=KEY-1`, own)).toBe("HIT");
    expect(await statusOf(`${path}?key=KEY-2`, own)).toBe("MISS");
    expect(await statusOf(`${path}?k%65y=KEY-1`, own)).toBe("MISS");
  });

  it("callers that differ in method or URL do not share a response", async () => {
    const path = named("azure-openai/one/gpt/files");
    expect(await statusOf(path, own)).toBe("MISS");
    expect(await statusOf(named("azure-openai/one/gpt-2/files"), own)).toBe("MISS");
    const got = await send(server, "GET", callPath(path), {
      headers: { "gw-aig-cache-ttl": "3600", ...own },
    });
    expect(got.headers["gw-aig-cache-status"]).toBe("MISS");
  });

  it("calls with different stored keys do not share a response", async () => {
    for (const [alias, secret_id] of [
      [`a-${kind.length}`, "OPENAI_API_KEY_A"],
      [`b-${kind.length}`, "OPENAI_API_KEY_B"],
    ]) {
      const { status } = await server.api(
        "POST",
        "/accounts/default/ai-gateway/gateways/default/provider_configs",
        { alias, default_config: false, provider_slug: "openai", secret_id },
      );
      expect(status).toBe(200);
    }
    const path = named("openai/stored");
    expect(await statusOf(path, { ...own, "gw-aig-byok-alias": `a-${kind.length}` })).toBe("MISS");
    expect(await statusOf(path, { ...own, "gw-aig-byok-alias": `a-${kind.length}` })).toBe("HIT");
    expect(await statusOf(path, { ...own, "gw-aig-byok-alias": `b-${kind.length}` })).toBe("MISS");
  });

  it("calls that differ only in user agent or trace headers share a response", async () => {
    const path = named("lab/neutral");
    expect(await statusOf(path, { ...own, "user-agent": "a/1", "x-stainless-retry-count": "0" })).toBe(
      "MISS",
    );
    const other = {
      "user-agent": "b/2",
      "x-stainless-retry-count": "1",
      "x-stainless-lang": "python",
      "idempotency-key": "k-2",
      "x-request-id": "r-2",
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    };
    expect(await statusOf(path, { ...own, ...other })).toBe("HIT");
  });
});

it("a custom cache key replaces the body in the key", async () => {
  const headers = { "gw-aig-cache-key": "stands-for-the-body" };
  expect(await statusOf("lab/body", headers, '{"model":"a","n":1}')).toBe("MISS");
  expect(await statusOf("lab/body", headers, '{"model":"a","n":2}')).toBe("HIT");
  expect(await statusOf("lab/body", { "gw-aig-cache-key": "another" }, '{"model":"a","n":2}')).toBe("MISS");
});

it("concurrent callers with different credentials each get their own response", async () => {
  provider.answer = (request, response) =>
    void setImmediate(() => sendJson(response, 200, { for: request.headers["x-api-key"] }));
  const bodies = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      post(server, "lab/together", { headers: { "gw-aig-cache-ttl": "3600", "x-api-key": `k-${i % 4}` } }),
    ),
  );
  expect(bodies.map(({ body }) => body)).toEqual(
    Array.from({ length: 20 }, (_, i) => JSON.stringify({ for: `k-${i % 4}` })),
  );
});

it.each([["*"], ["Accept-Encoding, User-Agent"]])(
  "a response that varies by a header outside the key (%s) is not cached",
  async (vary) => {
    provider.answer = (_, response) => sendJson(response, 200, { n: ++answers }, { vary });
    const path = `lab/vary/${encodeURIComponent(vary)}`;
    expect(await statusOf(path, {})).toBe("MISS");
    expect(await statusOf(path, {})).toBe("MISS");
  },
);

it("a response that varies by a header in the key is cached", async () => {
  provider.answer = (_, response) =>
    sendJson(response, 200, { n: ++answers }, { vary: "Accept-Encoding, Accept-Language, Origin" });
  expect(await statusOf("lab/vary-fine", {})).toBe("MISS");
  expect(await statusOf("lab/vary-fine", {})).toBe("HIT");
});
