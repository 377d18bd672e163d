/** `@signalbox/client` against a real service: every method of the management part is used once for real. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SignalboxClient } from "@signalbox/client";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
let client: SignalboxClient;

beforeAll(async () => {
  server = await startTestServer({ environment: { GITHUB_WEBHOOK_SECRET: "a secret of the test" } });
  client = new SignalboxClient({ url: server.url, token: ROOT_TOKEN });
});

afterAll(() => server.stop());

async function chat(gateway: string, text: string, headers: Record<string, string> = {}): Promise<Response> {
  const response = await fetch(`${server.url}/v1/default/${gateway}/echo/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "echo", messages: [{ role: "user", content: text }] }),
  });
  await response.text();
  return response;
}

describe("accounts and tokens", () => {
  it("creates, lists and reads accounts", async () => {
    const account = await client.accounts.create({ id: "acme", name: "Acme" });
    expect(account).toMatchObject({ id: "acme", name: "Acme" });
    expect(await client.accounts.get("acme")).toEqual(account);
    expect((await client.accounts.list().all()).map(({ id }) => id).toSorted()).toEqual(["acme", "default"]);
  });

  it("creates a token, shows its text once, uses it and revokes it", async () => {
    const { tokens } = client.account("default");
    const created = await tokens.create({ name: "reader", permissions: ["tags.read", "tokens.edit"] });
    const own = new SignalboxClient({ url: server.url, token: created.token });
    expect(await own.account("default").tokens.get(created.id)).not.toHaveProperty("token");
    await tokens.revoke(created.id);
    await expect(own.account("default").tokens.get(created.id)).rejects.toMatchObject({
      id: "unauthenticated",
      status: 401,
      code: 10000,
    });
  });

  it("reads a list over all its pages, and only as many pages as needed", async () => {
    await client.accounts.create({ id: "many" });
    const { tokens } = client.account("many");
    for (let n = 0; n < 120; n++) await tokens.create({ name: `token ${n}`, permissions: ["tags.read"] });
    const names: string[] = [];
    for await (const token of tokens.list()) names.push(token.name);
    expect(names).toEqual(Array.from({ length: 120 }, (_, n) => `token ${n}`));
    const sizes: number[] = [];
    for await (const page of tokens.list().pages()) sizes.push(page.items.length);
    expect(sizes).toEqual([100, 20]);
    expect(await tokens.list().all(3)).toHaveLength(3);
  });
});

describe("gateways and their logs", () => {
  it("walks a gateway from creation to deletion", async () => {
    const { gateways } = client.account();
    await gateways.create({ id: "shop", cache_ttl: 60 });
    const { token } = await gateways.createToken("shop", { name: "checkout" });
    expect(await gateways.update("shop", { authentication: true })).toMatchObject({
      authentication: true,
      cache_ttl: 60,
    });
    expect((await chat("shop", "hello")).status).toBe(401);
    expect((await chat("shop", "hello", { "gw-aig-authorization": `Bearer ${token}` })).status).toBe(200);
    expect(await gateways.providerUrl("shop", "echo")).toBe(`${server.url}/v1/default/shop/echo`);
    expect((await gateways.list({ search: "sho" }).all()).map(({ id }) => id)).toEqual(["shop"]);
    await gateways.delete("shop");
    await expect(gateways.get("shop")).rejects.toMatchObject({ status: 404 });
  });

  it("lists gateways over numbered pages", async () => {
    const { gateways } = client.account("acme");
    for (const id of ["a", "b", "c"]) await gateways.create({ id });
    expect((await gateways.list({ per_page: 2, search: "" }).all()).map(({ id }) => id)).toEqual(
      expect.arrayContaining(["a", "b", "c"]),
    );
  });

  it("reads, filters, rates and deletes calls, and sums up usage", async () => {
    const logs = client.account().logs("default");
    const ids: string[] = [];
    for (const text of ["one", "two", "three"]) {
      const response = await chat("default", text, { "gw-aig-metadata": JSON.stringify({ text }) });
      ids.push(response.headers.get("gw-aig-log-id") ?? "");
    }
    expect((await logs.list({ per_page: 2 }).all()).map(({ id }) => id)).toEqual(ids.toReversed());
    const filters = [
      { key: "metadata.key", operator: "eq", value: ["text"] },
      { key: "metadata.value", operator: "eq", value: ["two"] },
    ] as const;
    expect((await logs.list({ filters }).all()).map(({ id }) => id)).toEqual([ids[1]]);
    const [first = ""] = ids;
    expect(await logs.edit(first, { feedback: 1, score: 0.5 })).toMatchObject({ feedback: 1, score: 0.5 });
    expect(await logs.get(first)).toMatchObject({ provider: "echo", status_code: 200, feedback: 1 });
    expect(await (await logs.request(first)).json()).toMatchObject({ messages: [{ content: "one" }] });
    expect(await (await logs.response(first)).json()).toHaveProperty("choices");
    const [usage] = await client.account().usage({ group_by: ["provider"], gateway_id: ["default"] });
    expect(usage).toMatchObject({ provider: "echo", calls: 3 });
    expect(await logs.delete({ filters: [{ key: "id", operator: "eq", value: [first] }] })).toBe(1);
    expect(await logs.list().all()).toHaveLength(2);
  });
});

describe("tags", () => {
  it("sets, merges, reads, finds, counts and deletes", async () => {
    const { tags } = client.account();
    const resource = { resource_type: "ai_gateway", resource_id: "default" };
    const set = await tags.set({ ...resource, tags: { env: "prod", team: "core" } });
    await tags.patch({ ...resource, tags: { team: null, tier: "gold" } }, { etag: set.etag });
    await expect(tags.patch({ ...resource, tags: { a: "b" } }, { etag: set.etag })).rejects.toMatchObject({
      id: "tags_etag_mismatch",
      status: 412,
    });
    expect((await tags.get(resource)).tags).toEqual({ env: "prod", tier: "gold" });
    expect((await tags.resources({ tag: ["env=prod,test", "!team"] }).all()).map(({ id }) => id)).toEqual([
      "default",
    ]);
    expect(await tags.countResources({ tag: ["env"] })).toBe(1);
    expect(await tags.keys().all()).toEqual([
      { key: "env", count: 1 },
      { key: "tier", count: 1 },
    ]);
    expect(await tags.values("env").all()).toEqual([{ value: "prod", count: 1 }]);
    expect((await tags.history(resource).all()).map(({ action }) => action)).toEqual(["patch", "set"]);
    const results = await tags.bulk(
      [
        { ...resource, operation: "patch", tags: { env: "test" } },
        { resource_type: "nonsense", resource_id: "x", tags: {} },
      ],
      { dryRun: true },
    );
    expect(results.map(({ success }) => success)).toEqual([true, false]);
    await tags.delete(resource);
    await expect(tags.get(resource)).rejects.toMatchObject({ code: 1004, id: "tags_resource_not_found" });
  });
});

describe("webhooks", () => {
  it("reads sources, sends a test event, finds and replays its delivery", async () => {
    const { webhooks } = client.account();
    expect((await webhooks.sources().all()).map(({ name }) => name)).toContain("stripe");
    expect(await webhooks.source("github")).toMatchObject({ secrets: 1, agent: "webhook-agent" });
    const sent = await webhooks.sendTest("github", { entity: "acme/widgets" });
    expect(sent.status).toBe(200);
    const [delivery] = await webhooks.deliveries({ source: "github", status: "accepted" }).all();
    expect(delivery).toMatchObject({ delivery_id: sent.delivery_id, instance: "acme-widgets" });
    const detail = await webhooks.delivery(delivery?.id ?? "");
    expect(JSON.parse(detail.body ?? "")).toMatchObject({ repository: { full_name: "acme/widgets" } });
    expect(await webhooks.replay(delivery?.id ?? "")).toMatchObject({ status: "processed" });
    await expect(webhooks.sendTest("stripe")).rejects.toMatchObject({ id: "conflict", status: 409 });
  });
});

it("creates a login link for the dashboard", async () => {
  const { url, expires_at } = await client.createLoginLink();
  const response = await fetch(url, { redirect: "manual" });
  expect([response.status, response.headers.get("set-cookie")]).toEqual([
    303,
    expect.stringContaining("signalbox_session_"),
  ]);
  expect(Date.parse(expires_at)).toBeGreaterThan(Date.now());
});

describe("anything else", () => {
  it("is reachable by path", async () => {
    const { result } = await client.request<{ id: string }>("GET", "/accounts/default");
    expect(result.id).toBe("default");
  });
});
