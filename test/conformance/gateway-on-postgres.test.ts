/** The gateway with its settings in PostgreSQL instead of the embedded database. */
import { expect, it } from "vitest";
import { openTestPostgres } from "../support/test-postgres.ts";
import { startTestServer } from "../support/test-server.ts";
import { post, send, setGateway } from "../support/gateway.ts";
const to = (elementId: string) => ({ elementId });
const ELEMENTS = [
  { id: "start", type: "start", outputs: { next: to("m") } },
  {
    id: "m",
    type: "model",
    properties: { provider: "echo", model: "echo" },
    outputs: { success: to("end") },
  },
  { id: "end", type: "end" },
];
const ROUTED = JSON.stringify({
  provider: "compat",
  endpoint: "chat/completions",
  query: { model: "dynamic/r", messages: [{ role: "user", content: "Hi" }] },
});

it("gateways, providers, keys, dynamic routes and spending are stored in PostgreSQL and survive a restart", async () => {
  const pg = await openTestPostgres();
  const s = await startTestServer({ environment: { DATABASE_URL: pg.url, OPENAI_API_KEY: "x" } });
  await setGateway(s, {
    authentication: false,
    spend_limits: { rules: [{ id: "r", limitType: "cost", limit: 1, window: 3600 }] },
  });
  expect((await s.api("POST", "/accounts/default/ai-gateway/gateways", { id: "g2" })).status).toBe(200);
  expect(
    (
      await s.api("POST", "/accounts/default/ai-gateway/custom-providers", {
        name: "n",
        slug: "s",
        base_url: "https://example.com",
      })
    ).status,
  ).toBe(200);
  expect(
    (
      await s.api("POST", "/accounts/default/ai-gateway/gateways/default/provider_configs", {
        alias: "a",
        default_config: true,
        provider_slug: "openai",
      })
    ).status,
  ).toBe(200);
  expect(
    (await post(s, "echo/chat/completions", { headers: { "gw-aig-custom-cost": '{"total_cost":1}' } }))
      .status,
  ).toBe(200);
  expect(
    (await post(s, "echo/chat/completions", { headers: { "gw-aig-custom-cost": '{"total_cost":1}' } }))
      .status,
  ).toBe(429);
  const routes = "/accounts/default/ai-gateway/gateways/g2/routes";
  const { body } = await s.api("POST", routes, { name: "r", elements: ELEMENTS });
  const { id } = (body as { result: { id: string } }).result;
  const version = await s.api("POST", `${routes}/${id}/versions`, { elements: ELEMENTS });
  const { version_id } = (version.body as { result: { version_id: string } }).result;
  expect((await s.api("POST", `${routes}/${id}/deployments`, { version_id })).status).toBe(200);
  await s.service.stop();
  const t = await startTestServer({ environment: { DATABASE_URL: pg.url }, dataDir: s.dataDir });
  expect(
    (await post(t, "echo/chat/completions", { headers: { "gw-aig-custom-cost": '{"total_cost":1}' } }))
      .status,
  ).toBe(429);
  const routed = await send(t, "POST", "/v1/default/g2", {
    body: ROUTED,
    headers: { "content-type": "application/json" },
  });
  expect(routed.status).toBe(200);
  expect(routed.headers["gw-aig-route-version"]).toBe(version_id);
  expect((await t.api("DELETE", "/accounts/default/ai-gateway/gateways/g2")).status).toBe(200);
  expect((await t.api("DELETE", "/accounts/default/ai-gateway/gateways/default")).status).toBe(200);
  await t.stop();
  await s.stop();
  await pg.drop();
});
