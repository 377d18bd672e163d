/** The gateway with its settings in PostgreSQL instead of the embedded database. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { sendJson, startProvider } from "../peers/provider.ts";
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
    // A fixed window could end between the calls, at the full hour.
    spend_limits: { rules: [{ id: "r", limitType: "cost", limit: 1, window: 3600, technique: "sliding" }] },
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

it("virtual keys and encrypted provider keys are stored in PostgreSQL, which needs a master key", async () => {
  const pg = await openTestPostgres();
  const provider = await startProvider((_, response) => sendJson(response, 200, {}));
  const [one, two] = ["ab".repeat(32), Buffer.alloc(32, 7).toString("base64")];
  const start = (master: string, dataDir?: string) =>
    startTestServer({
      environment: { DATABASE_URL: pg.url, SIGNALBOX_MASTER_KEY: master },
      file: { providers: { openai: { baseUrl: provider.url } } },
      ...(dataDir === undefined ? {} : { dataDir }),
    });
  const keys = "/accounts/default/ai-gateway/provider_configs";
  const stored = { provider_slug: "openai", secret: "sk-in-postgres" };
  const first = await start("");
  const { dataDir } = first;
  expect((await first.api("POST", keys, stored)).body.errors[0]?.message).toContain("SIGNALBOX_MASTER_KEY");
  const made = await first.api("POST", "/accounts/default/tokens", {
    name: "v",
    permissions: ["gateway.run"],
    models: ["openai/*"],
    owner: "alice",
  });
  const { id, token } = made.body.result as { id: string; token: string };
  await first.api("PATCH", `/accounts/default/tokens/${id}`, { owner: "bob" });
  const rotated = await first.api("POST", `/accounts/default/tokens/${id}/rotate`, { grace_s: 600 });
  await first.service.stop();

  const texts = [token, (rotated.body.result as { token: string }).token];
  const call = async (server: typeof first, text: string | undefined) =>
    (await post(server, "openai/chat/completions", { headers: { "x-api-key": text ?? "" } })).status;
  const second = await start(one, dataDir);
  expect((await second.api("POST", keys, stored)).status).toBe(200);
  expect((await second.api("GET", "/accounts/default/tokens?owner=bob")).body.result).toMatchObject([{ id }]);
  for (const text of texts) expect(await call(second, text)).toBe(200);
  expect(provider.requests.at(-1)?.headers.authorization).toBe("Bearer sk-in-postgres");
  await second.service.stop();

  const third = await start(`${two},${one}`, dataDir);
  const rotation = await third.api("POST", "/provider_keys/rotate_master");
  expect(rotation.body.result).toEqual({ rotated: 1, unreadable: 0 });
  await third.service.stop();
  const fourth = await start(two, dataDir);
  expect(await call(fourth, texts[1])).toBe(200);
  await fourth.service.stop();
  const last = await start(one, dataDir);
  expect(await call(last, texts[1])).toBe(400);
  expect(JSON.stringify(last.logs)).toContain("cannot decrypt the stored key");
  expect(existsSync(join(dataDir, "master-key"))).toBe(false);
  await last.stop();
  await first.stop();
  await provider.close();
  await pg.drop();
});
