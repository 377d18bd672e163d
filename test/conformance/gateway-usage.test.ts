/** Usage of gateways: sums by group, filters by tag. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { post } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const path = "/accounts/default/ai-gateway/usage";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  for (const id of ["usage-a", "usage-b"])
    await server.api("POST", "/accounts/default/ai-gateway/gateways", { id });
  const call = (gateway: string, model: string) =>
    post(server, "echo/chat/completions", {
      gateway,
      body: JSON.stringify({ model, messages: [{ role: "user", content: "hello" }] }),
    });
  await call("usage-a", "one");
  await call("usage-a", "two");
  await call("usage-b", "one");
});
afterAll(() => server.stop());

it("usage is summed by the requested groups", async () => {
  const ours = "gateway_id=usage-a&gateway_id=usage-b";
  const all = (await server.api("GET", `${path}?${ours}`)).body.result;
  expect(all).toHaveLength(1);
  expect(all[0]).toMatchObject({ calls: 3, errors: 0, cached: 0 });
  expect(all[0].tokens_in).toBeGreaterThan(0);
  expect(all[0].duration_p95).toBeGreaterThan(0);
  const byGateway = (await server.api("GET", `${path}?group_by=gateway&${ours}`)).body.result;
  expect(byGateway).toMatchObject([
    { gateway_id: "usage-a", calls: 2 },
    { gateway_id: "usage-b", calls: 1 },
  ]);
  const byModel = (await server.api("GET", `${path}?group_by=provider,model&gateway_id=usage-a`)).body.result;
  expect(byModel).toMatchObject([
    { provider: "echo", model: "one", calls: 1 },
    { provider: "echo", model: "two", calls: 1 },
  ]);
  const byHour = (await server.api("GET", `${path}?group_by=hour&group_by=gateway&${ours}`)).body.result;
  expect(byHour.reduce((sum: number, one: { calls: number }) => sum + one.calls, 0)).toBe(3);
  expect(byHour[0].hour).toMatch(/:00:00\.000Z$/);
  const byMinute = (await server.api("GET", `${path}?group_by=minute,model&${ours}`)).body.result;
  expect(byMinute.reduce((sum: number, one: { calls: number }) => sum + one.calls, 0)).toBe(3);
  expect(byMinute[0].minute).toMatch(/:00\.000Z$/);
  const past = `${path}?start=2020-01-01T00:00:00Z&end=2021-01-01T00:00:00Z`;
  expect((await server.api("GET", past)).body.result).toEqual([]);
});

it("usage is grouped and filtered by the tags of gateways", async () => {
  const tag = (id: string, tags: Record<string, string>) =>
    server.api("PUT", "/accounts/default/tags", { resource_type: "ai_gateway", resource_id: id, tags });
  await tag("usage-a", { team: "red", env: "prod" });
  await tag("usage-b", { env: "prod" });
  const byTeam = await server.api("GET", `${path}?group_by=tag:team&tag=env=prod`);
  expect(byTeam.body.result).toMatchObject([
    { tag: "red", calls: 2 },
    { tag: null, calls: 1 },
  ]);
  const byEnv = await server.api("GET", `${path}?group_by=model,tag:env&tag=env`);
  expect(byEnv.body.result).toMatchObject([
    { tag: "prod", model: "one", calls: 2 },
    { tag: "prod", model: "two", calls: 1 },
  ]);
  expect((await server.api("GET", `${path}?tag=env=none`)).body.result).toEqual([]);
  expect((await server.api("GET", `${path}?tag=team&gateway_id=usage-b`)).body.result).toEqual([]);
  expect((await server.api("GET", `${path}?tag==x`)).body.errors[0].code).toBe(1007);
});

it.each([
  "group_by=colour",
  "group_by=hour,day",
  "group_by=minute,hour",
  "group_by=minute,tag:env",
  "group_by=tag:",
  "start=soon",
  "nope=1",
])("usage refuses the query %s", async (query) => {
  expect((await server.api("GET", `${path}?${query}`)).status).toBe(400);
});
