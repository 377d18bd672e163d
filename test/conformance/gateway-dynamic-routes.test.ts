/** Dynamic routes: managed with the public `cloudflare` SDK, called as `dynamic/{name}` through the universal endpoint. */
import Cloudflare from "cloudflare";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { readLogs, send, setGateway } from "../support/gateway.ts";
import { callRoute, end, model, start, to } from "../support/route-elements.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

type Elements = Cloudflare.AIGateway.DynamicRoutingCreateParams["elements"];

let first: ProviderPeer;
let second: ProviderPeer;
let server: TestServer;
let cloudflare: Cloudflare;
const BEGIN = Date.now();
const FULL_HOUR = Math.ceil(BEGIN / 3_600_000) * 3_600_000;
let now = BEGIN;
/** Of the clock, each of which moves it by a millisecond. */
let reads = 0;
beforeAll(async () => {
  first = await startProvider(() => undefined);
  second = await startProvider(() => undefined);
  server = await startTestServer({
    // Rows are ordered by time, so that this clock does not stand still. It begins at a full hour: no window of a budget ends within a test.
    clock: { now: () => FULL_HOUR + reads++ + (now - BEGIN) },
    steadyClock: { now: () => now },
    file: {
      providers: { openai: { baseUrl: first.url }, groq: { baseUrl: second.url } },
      gateway: { prices: { openai: { large: { in: 1_000_000, out: 1_000_000 } } } },
    },
  });
  cloudflare = new Cloudflare({ apiToken: ROOT_TOKEN, baseURL: `${server.url}/client/v4`, maxRetries: 0 });
});
afterAll(async () => {
  await server.stop();
  await first.close();
  await second.close();
});
beforeEach(async () => {
  for (const peer of [first, second]) {
    peer.requests.length = 0;
    peer.answer = ({ body }, response) =>
      sendJson(response, 200, {
        model: (JSON.parse(body) as { model: string }).model,
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      });
  }
  await server.api("DELETE", "/accounts/default/ai-gateway/gateways/default/circuits");
});

const where = { account_id: "default", gateway_id: "default" };
let made = 0;
async function createRoute(elements: Elements) {
  made += 1;
  return cloudflare.aiGateway.dynamicRouting.create("default", {
    account_id: "default",
    name: `route-${made}`,
    elements,
  });
}

const call = (name: string, headers: Record<string, string> = {}, query: object = {}) =>
  callRoute(server, name, headers, query);

const metadata = (value: object) => ({ "gw-aig-metadata": JSON.stringify(value) });

describe("management with the cloudflare SDK", () => {
  it("a route is created, read, listed, renamed and deleted", async () => {
    const routing = cloudflare.aiGateway.dynamicRouting;
    const elements = [start("large"), model("large", "openai"), end];
    const route = await createRoute(elements);
    expect(route).toMatchObject({
      gateway_id: "default",
      elements,
      deployment: { version_id: route.version.version_id },
      version: { active: "true", is_valid: true },
    });
    expect(await routing.get(route.id, where)).toEqual(route);
    const { data } = await routing.list("default", { account_id: "default" });
    expect(data.routes.map(({ id }) => id)).toContain(route.id);
    const { route: renamed } = await routing.update(route.id, { ...where, name: "renamed" });
    expect(renamed).toMatchObject({ id: route.id, name: "renamed", account_tag: "default" });
    expect((await call("renamed")).status).toBe(200);
    expect((await call(route.name)).json).toMatchObject({ internalCode: 2044 });
    expect(await routing.delete(route.id, where)).toMatchObject({ id: route.id, elements });
    await expect(routing.get(route.id, where)).rejects.toThrow(Cloudflare.NotFoundError);
    expect((await call("renamed")).json).toMatchObject({ internalCode: 2044 });
  });

  it("a version serves calls when it is deployed, and an earlier one after a rollback", async () => {
    const routing = cloudflare.aiGateway.dynamicRouting;
    const route = await createRoute([start("large"), model("large", "openai"), end]);
    const elements = [start("mini"), model("mini", "groq"), end];
    await routing.createVersion(route.id, { ...where, elements });
    const { data } = await routing.listVersions(route.id, where);
    expect(data.versions.map(({ active }) => active)).toEqual(["false", "true"]);
    const second_id = data.versions[0]?.version_id ?? "";
    expect((await call(route.name)).json["model"]).toBe("large");
    expect(await routing.getVersion(second_id, { ...where, id: route.id })).toMatchObject({
      id: route.id,
      version_id: second_id,
      active: "false",
      elements,
    });
    await routing.createDeployment(route.id, { ...where, version_id: second_id });
    const answer = await call(route.name);
    expect(answer.json["model"]).toBe("mini");
    expect(answer.headers).toMatchObject({ "gw-aig-route": route.name, "gw-aig-route-version": second_id });
    await routing.createDeployment(route.id, { ...where, version_id: route.version.version_id });
    expect((await call(route.name)).json["model"]).toBe("large");
    const history = await routing.listDeployments(route.id, where);
    expect(history.data.deployments.map(({ version_id }) => version_id)).toEqual([
      route.version.version_id,
      second_id,
      route.version.version_id,
    ]);
    await expect(routing.createDeployment(route.id, { ...where, version_id: "none" })).rejects.toThrow(
      Cloudflare.NotFoundError,
    );
  });

  it.each<[string, object[], RegExp]>([
    [
      "a cycle",
      [start("a"), model("a", "openai", "b"), model("b", "openai", "a"), end],
      /element \\"b\\".*cycle/,
    ],
    ["a dangling id", [start("gone"), model("a", "openai"), end], /element \\"start\\".*gone/],
    ["an unknown provider", [start("a"), model("a", "nobody"), end], /element \\"a\\".*nobody/],
  ])("refused with the element's name: %s", async (_, elements, message) => {
    const before = (await cloudflare.aiGateway.dynamicRouting.list("default", { account_id: "default" })).data
      .routes;
    await expect(createRoute(elements as Elements)).rejects.toThrow(message);
    const after = (await cloudflare.aiGateway.dynamicRouting.list("default", { account_id: "default" })).data
      .routes;
    expect(after).toEqual(before);
  });

  it("names are unique in a gateway, and limited to safe characters", async () => {
    const route = await createRoute([start("a"), model("a", "openai"), end]);
    const again = (name: string) =>
      cloudflare.aiGateway.dynamicRouting.create("default", {
        account_id: "default",
        name,
        elements: [start("a"), model("a", "openai"), end],
      });
    await expect(again(route.name)).rejects.toThrow(/already exists/);
    await expect(again("a/b")).rejects.toThrow(/name/);
    const other = await createRoute([start("a"), model("a", "openai"), end]);
    await expect(
      cloudflare.aiGateway.dynamicRouting.update(other.id, { ...where, name: route.name }),
    ).rejects.toThrow(/already exists/);
  });

  it("simultaneous changes of a route leave memory and database the same", async () => {
    const routing = cloudflare.aiGateway.dynamicRouting;
    const route = await createRoute([start("a"), model("a", "openai"), end]);
    await routing.createVersion(route.id, { ...where, elements: [start("b"), model("b", "groq"), end] });
    const versions = (await routing.listVersions(route.id, where)).data.versions.map((one) => one.version_id);
    await Promise.all([
      ...versions.map((version_id) => routing.createDeployment(route.id, { ...where, version_id })),
      routing.update(route.id, { ...where, name: "changed" }),
      ...versions.map((version_id) => routing.createDeployment(route.id, { ...where, version_id })),
    ]);
    const { name, version } = await routing.get(route.id, where);
    expect(name).toBe("changed");
    const [last] = (await routing.listDeployments(route.id, where)).data.deployments;
    expect(last?.version_id).toBe(version.version_id);
    await routing.delete(route.id, where);
  });

  it("routes are read again after a restart", async () => {
    const before = await startTestServer();
    const body = { name: "r", elements: [start("a"), model("a", "echo"), end] };
    await before.api("POST", "/accounts/default/ai-gateway/gateways/default/routes", body);
    await before.service.stop();
    const after = await startTestServer({ dataDir: before.dataDir });
    const { body: listed } = await after.api("GET", "/accounts/default/ai-gateway/gateways/default/routes");
    expect(listed).toMatchObject({ result: [body] });
    await after.stop();
    await before.stop();
  });

  it("routes go with their gateway", async () => {
    await server.api("POST", "/accounts/default/ai-gateway/gateways", { id: "short" });
    const route = await cloudflare.aiGateway.dynamicRouting.create("short", {
      account_id: "default",
      name: "r",
      elements: [start("a"), model("a", "openai"), end],
    });
    await server.api("DELETE", "/accounts/default/ai-gateway/gateways/short");
    await server.api("POST", "/accounts/default/ai-gateway/gateways", { id: "short" });
    await expect(
      cloudflare.aiGateway.dynamicRouting.get(route.id, { account_id: "default", gateway_id: "short" }),
    ).rejects.toThrow(Cloudflare.NotFoundError);
  });

  it("a trial shows the way, without a call and without counting", async () => {
    const route = await createRoute([
      start("plan"),
      {
        id: "plan",
        type: "conditional",
        properties: { conditions: { "metadata.plan": "free" } },
        outputs: { true: to("mini"), false: to("limit") },
      },
      {
        id: "limit",
        type: "rate",
        properties: { limitType: "count", key: "", limit: 1, window: 60 },
        outputs: { success: to("large"), fallback: to("mini") },
      },
      model("large", "openai", "mini"),
      model("mini", "groq"),
      end,
    ]);
    const attempt = async (body: object) => {
      const path = `/accounts/default/ai-gateway/gateways/default/routes/${route.id}/try`;
      return (await server.api("POST", path, body)).body as { result: { way: { id: string }[] } };
    };
    for (let i = 0; i < 3; i++) {
      expect(await attempt({})).toMatchObject({
        result: { provider: "openai", model: "large", error: null },
      });
    }
    expect(await attempt({ metadata: { plan: "free" } })).toMatchObject({ result: { model: "mini" } });
    const failed = await attempt({ failing: ["large"] });
    expect(failed.result.way.map(({ id }) => id)).toEqual(["start", "plan", "limit", "large", "mini"]);
    expect(first.requests).toHaveLength(0);
  });
});

describe("calls", () => {
  it("a condition chooses the model, and the response names route, version and step", async () => {
    const route = await createRoute([
      start("plan"),
      {
        id: "plan",
        type: "conditional",
        properties: { conditions: { "metadata.plan": { $in: ["pro", "team"] } } },
        outputs: { true: to("large"), false: to("mini") },
      },
      model("large", "openai"),
      model("mini", "groq"),
      end,
    ]);
    const pro = await call(route.name, metadata({ plan: "pro" }));
    expect(pro).toMatchObject({ status: 200, json: { model: "large" } });
    expect(pro.headers).toMatchObject({
      "gw-aig-route": route.name,
      "gw-aig-route-version": route.version.version_id,
      "gw-aig-step": "0",
    });
    expect((await call(route.name)).json["model"]).toBe("mini");
    expect((await readLogs(server))[0]).toMatchObject({ provider: "groq", model: "mini" });
  });

  it("the caller's credential goes to no provider; its other headers do", async () => {
    const route = await createRoute([start("a"), model("a", "openai"), end]);
    await call(route.name);
    expect(first.requests[0]?.headers).not.toHaveProperty("authorization");
    expect(first.requests[0]?.headers["x-kept"]).toBe("1");
  });

  it("a model that fails goes to its fallback after its retries", async () => {
    const route = await createRoute([
      start("large"),
      model("large", "openai", "mini", 1),
      model("mini", "groq"),
      end,
    ]);
    first.answer = (_, response) => sendJson(response, 500, {});
    const answer = await call(route.name, { "gw-aig-retry-delay": "1" });
    expect(answer).toMatchObject({ status: 200, json: { model: "mini" } });
    expect(answer.headers["gw-aig-step"]).toBe("1");
    expect(first.requests).toHaveLength(2);
    second.answer = (_, response) => sendJson(response, 503, { error: "busy" });
    const failed = await call(route.name, { "gw-aig-retry-delay": "1" });
    expect(failed).toMatchObject({ status: 503, json: { error: "busy" } });
    expect(failed.headers["gw-aig-route"]).toBe(route.name);
  });

  it("a rate element counts by its key, and sends the rest to its fallback", async () => {
    const route = await createRoute([
      start("limit"),
      {
        id: "limit",
        type: "rate",
        properties: { limitType: "count", key: "metadata.user_id", limit: 2, window: 60 },
        outputs: { success: to("large"), fallback: to("mini") },
      },
      model("large", "openai"),
      model("mini", "groq"),
      end,
    ]);
    const models = async (user: object) => (await call(route.name, metadata(user))).json["model"];
    const one = { user_id: "one" };
    expect([await models(one), await models(one), await models(one)]).toEqual(["large", "large", "mini"]);
    expect(await models({ user_id: "two" })).toBe("large");
    now += 60_000;
    expect(await models(one)).toBe("large");
  });

  it("a budget element counts the cost of its calls; without a fallback it refuses with 2041", async () => {
    const route = await createRoute([
      start("limit"),
      {
        id: "limit",
        type: "rate",
        properties: { limitType: "cost", key: "", limit: 3, window: 60 },
        outputs: { success: to("large") },
      } as never,
      model("large", "openai"),
      end,
    ]);
    expect((await call(route.name)).status).toBe(200);
    expect((await call(route.name)).status).toBe(200);
    const refused = await call(route.name);
    expect(refused).toMatchObject({ status: 429, json: { internalCode: 2041 } });
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
    now += 60_000;
    expect((await call(route.name)).status).toBe(200);
  });

  it("a model that the gateway's budget does not cover goes to its fallback", async () => {
    const route = await createRoute([
      start("large"),
      model("large", "openai", "mini"),
      model("mini", "groq"),
      end,
    ]);
    const rule = { limitType: "cost", limit: 1, window: 3600, model: { mode: "filter", values: ["large"] } };
    await setGateway(server, { spend_limits: { enabled: true, rules: [rule] } });
    try {
      expect((await call(route.name)).json["model"]).toBe("large");
      const over = await call(route.name);
      expect(over).toMatchObject({ status: 200, json: { model: "mini" } });
      expect(over.headers["gw-aig-step"]).toBe("1");
      const alone = await createRoute([start("large"), model("large", "openai"), end]);
      expect(await call(alone.name)).toMatchObject({ status: 429, json: { internalCode: 2041 } });
    } finally {
      await setGateway(server, { spend_limits: null });
    }
  });

  it("a route that reaches no model is refused with the way it took", async () => {
    const route = await createRoute([
      start("plan"),
      {
        id: "plan",
        type: "conditional",
        properties: { conditions: { "metadata.plan": "pro" } },
        outputs: { true: to("large"), false: to("end") },
      },
      model("large", "openai"),
      end,
    ]);
    expect(await call(route.name)).toMatchObject({
      status: 400,
      json: { internalCode: 2045, message: expect.stringContaining("start → plan → end") as string },
    });
  });

  it("a route must be the only step, and must exist", async () => {
    const step = { provider: "compat", endpoint: "chat/completions", query: { model: "dynamic/none" } };
    const post = (body: unknown) =>
      send(server, "POST", "/v1/default/default", {
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    expect(JSON.parse((await post([step, step])).body)).toMatchObject({ internalCode: 2002 });
    expect(JSON.parse((await post(step)).body)).toMatchObject({ internalCode: 2044 });
  });

  it("every call under a deployment sees the old version or the new one, and never an error", async () => {
    const routing = cloudflare.aiGateway.dynamicRouting;
    const route = await createRoute([start("large"), model("large", "openai"), end]);
    await routing.createVersion(route.id, {
      ...where,
      elements: [start("mini"), model("mini", "groq"), end],
    });
    const [next] = (await routing.listVersions(route.id, where)).data.versions;
    const versions = [route.version.version_id, next?.version_id ?? ""];
    const seen = new Set<string>();
    let isDone = false;
    const traffic = Array.from({ length: 4 }, async () => {
      while (!isDone) {
        const answer = await call(route.name);
        const expected = answer.headers["gw-aig-route-version"] === versions[0] ? "large" : "mini";
        expect(answer).toMatchObject({ status: 200, json: { model: expected } });
        seen.add(expected);
      }
    });
    for (let i = 1; i <= 20; i++) {
      await routing.createDeployment(route.id, { ...where, version_id: versions[i % 2] ?? "" });
    }
    isDone = true;
    await Promise.all(traffic);
    expect([...seen].sort()).toEqual(["large", "mini"]);
  });
});
