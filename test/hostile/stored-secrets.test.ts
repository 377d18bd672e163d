/** A stored provider key, a token and a master key are looked for wherever they must not be, and other owners try to use a stored key. */
import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { callPath, CHAT, readLogs, send } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const SECRET = "sk-very-secret-provider-key-0123456789";
const GATEWAYS = "/accounts/default/ai-gateway/gateways";
let provider: ProviderPeer;
let elsewhere: ProviderPeer;
let server: TestServer;
let token: string;
beforeAll(async () => {
  provider = await startProvider((_, response) => sendJson(response, 200, { ok: true }));
  elsewhere = await startProvider((_, response) => sendJson(response, 200, { ok: true }));
  server = await startTestServer({
    file: {
      providers: { openai: { baseUrl: provider.url } },
      gateway: { allowPrivateCustomProviders: true },
    },
  });
  token = await server.token(["gateway.run"]);
});
afterAll(async () => {
  await server.stop();
  rmSync(server.dataDir, { recursive: true, force: true });
  await provider.close();
  await elsewhere.close();
});

const store = async (fields: object, gateway = "default") => {
  const answer = await server.api("POST", `${GATEWAYS}/${gateway}/provider_configs`, fields);
  expect(answer.status).toBe(200);
  return answer.body.result as { id: string };
};
const call = (slug = "openai", headers: Record<string, string> = {}, gateway = "default") =>
  send(server, "POST", callPath(`${slug}/chat/completions`, gateway), {
    body: CHAT,
    headers: { "content-type": "application/json", ...headers },
  });
const withToken = () => ({ "gw-aig-authorization": `Bearer ${token}` });

function filesOf(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? filesOf(join(folder, entry.name)) : [join(folder, entry.name)],
  );
}

describe("a stored key", () => {
  it("is in no file, log, row, answer, error or metric; the master key is in one file of the owner", async () => {
    const { id } = await store({ provider_slug: "openai", secret: SECRET });
    const path = `${GATEWAYS}/default/provider_configs`;
    expect((await call("openai", withToken())).status).toBe(200);
    expect(provider.requests.at(-1)?.headers.authorization).toBe(`Bearer ${SECRET}`);
    provider.answer = (_, response) => sendJson(response, 401, { error: "no" });
    await call("openai", withToken());
    await call("openai", withToken());
    provider.answer = (_, response) => sendJson(response, 200, { ok: true });
    const seen = [
      await server.api("PATCH", `${path}/${id}`, { secret: `${SECRET} \n`, provider_slug: "groq" }),
      await server.api("PATCH", `${path}/${id}`, { weight: 2 }),
      await server.api("POST", path, { provider_slug: "openai", secret: SECRET, secret_id: "x" }),
      await server.api("POST", path, { provider_slug: "openai", secret: [SECRET] }),
      await server.api("POST", path, `{"provider_slug":"openai","secret":"${SECRET}"`),
      await server.api("GET", path),
      await server.api("GET", "/openapi.json"),
      await server.api("POST", "/provider_keys/rotate_master"),
    ].map(({ body }) => JSON.stringify(body));
    seen.push(JSON.stringify(await readLogs(server)), JSON.stringify(server.logs));
    seen.push(await (await fetch(`${server.url}/metrics`)).text());
    seen.push(inspect(server.service, { depth: 12, showHidden: true }));
    for (const text of seen) {
      expect(text).not.toContain(SECRET);
      expect(text).not.toContain(SECRET.slice(0, 20));
    }
    const master = readFileSync(join(server.dataDir, "master-key"), "utf8").trim();
    expect(statSync(join(server.dataDir, "master-key")).mode & 0o777).toBe(0o600);
    for (const file of filesOf(server.dataDir)) {
      const bytes = readFileSync(file);
      for (const text of [SECRET, token, SECRET.slice(8, 30)])
        expect([file, bytes.includes(text)]).toEqual([file, false]);
      if (!file.endsWith("master-key")) expect([file, bytes.includes(master)]).toEqual([file, false]);
    }
    expect(JSON.stringify(server.logs)).toContain("SIGNALBOX_MASTER_KEY");
  });

  it("is refused without a token while the gateway allows no anonymous keys", async () => {
    provider.requests.length = 0;
    for (const headers of [{}, { "gw-aig-byok-alias": "pinned" }]) {
      await store({ provider_slug: "openai", secret: SECRET, alias: "pinned" }).catch(() => null);
      const answer = await call("openai", headers);
      expect([answer.status, JSON.parse(answer.body).internalCode]).toEqual([401, 2009]);
    }
    expect((await call("openai", { authorization: "Bearer own" })).status).toBe(200);
    expect(provider.requests.map(({ headers }) => headers.authorization)).toEqual(["Bearer own"]);
    const steps = JSON.stringify([
      { provider: "openai", endpoint: "chat/completions", query: JSON.parse(CHAT) },
    ]);
    expect((await send(server, "POST", "/v1/default/default", { body: steps })).status).toBe(401);
    expect(provider.requests).toHaveLength(1);
    await server.api("PUT", `${GATEWAYS}/default`, { allow_anonymous_keys: true });
    expect((await call()).status).toBe(200);
    await server.api("PUT", `${GATEWAYS}/default`, { allow_anonymous_keys: false });
  });

  it("does not follow a custom provider to another address", async () => {
    const made = await server.api("POST", "/accounts/default/ai-gateway/custom-providers", {
      name: "mine",
      slug: "mine",
      base_url: `${provider.url}/a`,
    });
    await store({ provider_slug: "custom-mine", secret: SECRET });
    expect((await call("custom-mine", withToken())).status).toBe(200);
    const path = `/accounts/default/ai-gateway/custom-providers/${(made.body.result as { id: string }).id}`;
    for (const base_url of [elsewhere.url, `${provider.url}/b`]) {
      expect((await server.api("PATCH", path, { base_url })).status).toBe(200);
      expect((await call("custom-mine", withToken())).status).toBe(400);
    }
    expect(elsewhere.requests).toEqual([]);
    await server.api("PATCH", path, { base_url: `${provider.url}/a` });
    expect((await call("custom-mine", withToken())).status).toBe(200);
  });

  it("cannot be moved to another owner in the database", async () => {
    await server.api("POST", GATEWAYS, { id: "other" });
    const { id } = await store({ provider_slug: "groq", secret: SECRET, alias: "moved" });
    await server.service.stop();
    const database = new DatabaseSync(join(server.dataDir, "signalbox.db"));
    database.prepare("UPDATE stored_provider_key SET gateway_id = 'other' WHERE id = ?").run(id);
    database.prepare("UPDATE stored_provider_key SET provider_slug = 'openai' WHERE id = ?").run(id);
    database.close();
    const { dataDir } = server;
    server = await startTestServer({ dataDir, file: { providers: { openai: { baseUrl: provider.url } } } });
    provider.requests.length = 0;
    const answer = await call("openai", { ...withToken(), "gw-aig-byok-alias": "moved" }, "other");
    expect([answer.status, provider.requests]).toEqual([400, []]);
    expect(JSON.stringify(server.logs)).toContain("cannot decrypt the stored key moved");
  });

  it("is not a token, a line break or a name of another secret", async () => {
    const path = `${GATEWAYS}/default/provider_configs`;
    for (const fields of [
      { secret: token },
      { secret: "a\r\nx: y" },
      { secret: "" },
      { secret_id: "env:SIGNALBOX_ROOT_TOKEN" },
      { secret_id: "env:" },
      { secret_id: "file:/etc/passwd" },
      { secret_id: "file:/run/secrets/../../etc/openai_api_key" },
      { secret_id: "file:/run/secrets/sub/openai_api_key" },
      { secret_id: "file:/run/secrets/anthropic_api_key" },
    ]) {
      const { status, body } = await server.api("POST", path, { provider_slug: "openai", ...fields });
      expect([fields, status]).toEqual([fields, 400]);
      expect(JSON.stringify(body)).not.toContain(token);
    }
  });
});
