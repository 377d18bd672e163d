/** A replay is a call of the caller, but a provider, even one that belongs to an attacker, receives no credential of Signalbox with it. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

const AI = "/accounts/default/ai-gateway";
const CHAT = '{"model":"m","messages":[{"role":"user","content":"x"}]}';

let provider: ProviderPeer;
let server: TestServer;
let callId: string;
beforeAll(async () => {
  provider = await startProvider((_, response) => sendJson(response, 200, { ok: true }));
  server = await startTestServer({
    file: {
      providers: { openai: { baseUrl: provider.url } },
      gateway: { allowPrivateCustomProviders: true },
    },
  });
  const { status } = await server.api("POST", `${AI}/custom-providers`, {
    name: "theirs",
    slug: "theirs",
    base_url: provider.url,
    enable: true,
  });
  expect(status).toBe(200);
  const call = await fetch(`${server.url}/v1/default/default/openai/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer key-of-the-first-caller" },
    body: CHAT,
  });
  await call.arrayBuffer();
  callId = call.headers.get("gw-aig-log-id") ?? "";
});
afterAll(async () => {
  await server.stop();
  await provider.close();
});

async function sessionOfRoot(): Promise<string> {
  const login = await fetch(await server.service.createLoginLink(), { redirect: "manual" });
  return (login.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
}

describe.each([{ authentication: false }, { authentication: true }])(
  "a gateway with authentication $authentication",
  ({ authentication }) => {
    it.each([{ body: {} }, { body: { model: "custom-theirs/m" } }, { body: { model: "openai/m" } }])(
      "sends no token, root token or session of the caller with a replay of $body",
      async ({ body }) => {
        await server.api("PUT", `${AI}/gateways/default`, { authentication });
        const token = await server.token(["gateway.run", "gateway.read"]);
        const cookie = await sessionOfRoot();
        const callers = [
          { authorization: `Bearer ${ROOT_TOKEN}` },
          { authorization: `Bearer ${token}` },
          { cookie, origin: server.url },
        ];
        provider.requests.length = 0;
        for (const headers of callers) {
          const response = await fetch(`${server.url}${AI}/gateways/default/logs/${callId}/replay`, {
            method: "POST",
            headers: { "content-type": "application/json", ...headers },
            body: JSON.stringify(body),
          });
          expect([response.status, await response.json()]).toMatchObject([200, { success: true }]);
        }
        // A custom provider needs no key.
        if ("model" in body && body.model.startsWith("custom-")) expect(provider.requests).toHaveLength(3);
        const received = JSON.stringify(provider.requests);
        const secrets = [ROOT_TOKEN, token, cookie.split("=")[1] ?? "", "key-of-the-first-caller"];
        expect(secrets.filter((secret) => secret === "" || received.includes(secret))).toEqual([]);
        expect(provider.requests.some(({ headers }) => "authorization" in headers)).toBe(false);
      },
    );
  },
);
