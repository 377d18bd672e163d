/** The gateway with its settings in PostgreSQL instead of the embedded database. */
import { expect, it } from "vitest";
import { openTestPostgres } from "../support/test-postgres.ts";
import { startTestServer } from "../support/test-server.ts";
import { post, setGateway } from "../support/gateway.ts";
it("gateways, providers, keys and spending are stored in PostgreSQL and survive a restart", async () => {
  const pg = await openTestPostgres();
  const s = await startTestServer({ environment: { DATABASE_URL: pg.url, OPENAI_API_KEY: "x" } });
  await setGateway(s, {
    authentication: false,
    spend_limits: { rules: [{ id: "r", limitType: "cost", limit: 1, window: 3600 }] },
    trust_custom_cost: true,
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
  await s.service.stop();
  const t = await startTestServer({ environment: { DATABASE_URL: pg.url }, dataDir: s.dataDir });
  expect(
    (await post(t, "echo/chat/completions", { headers: { "gw-aig-custom-cost": '{"total_cost":1}' } }))
      .status,
  ).toBe(429);
  expect((await t.api("DELETE", "/accounts/default/ai-gateway/gateways/default")).status).toBe(200);
  await t.stop();
  await s.stop();
  await pg.drop();
});
