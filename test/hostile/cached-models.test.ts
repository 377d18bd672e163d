/** A caller whose token is limited to some models names a cache key under which the response of another model is stored. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ProviderPeer, sendJson } from "../peers/provider.ts";
import { send, setGateway, startWithProvider } from "../support/gateway.ts";
import type { TestServer } from "../support/test-server.ts";

let provider: ProviderPeer;
let server: TestServer;
let stop: () => Promise<void>;
let limited: string;
let full: string;
beforeAll(async () => {
  ({ provider, server, stop } = await startWithProvider((at) => ({
    file: { providers: { openai: at, anthropic: at, "google-ai-studio": at } },
    environment: { OPENAI_API_KEY: "sk-o", ANTHROPIC_API_KEY: "sk-a", GOOGLE_AI_STUDIO_API_KEY: "g" },
  })));
  await setGateway(server, { authentication: true });
  for (const provider_slug of ["openai", "anthropic", "google-ai-studio"]) {
    const { status } = await server.api(
      "POST",
      "/accounts/default/ai-gateway/gateways/default/provider_configs",
      { provider_slug, alias: "", default_config: true },
    );
    expect(status).toBe(200);
  }
  limited = await make({ models: ["*/small*"] });
  full = await make({});
});
afterAll(() => stop());
beforeEach(() => {
  provider.requests.length = 0;
  provider.answer = (request, response) => sendJson(response, 200, answerOf(request.url, request.body));
});

async function make(policy: object): Promise<string> {
  const { body } = await server.api("POST", "/accounts/default/tokens", {
    name: "caller",
    permissions: ["gateway.run"],
    ...policy,
  });
  return (body as { result: { token: string } }).result.token;
}

/** In the dialect of the path; the text names the model that answered. */
function answerOf(path: string, body: string): object {
  const { model = /models\/([^:]+)/.exec(path)?.[1] } = JSON.parse(body) as { model?: string };
  const text = `secret of ${model}`;
  if (path.includes("messages")) {
    const usage = { input_tokens: 1, output_tokens: 1 };
    const content = [{ type: "text", text }];
    return { id: "m", type: "message", role: "assistant", model, content, stop_reason: "end_turn", usage };
  }
  if (path.includes("models/")) return { candidates: [{ content: { role: "model", parts: [{ text }] } }] };
  const message = { role: "assistant", content: text };
  return { id: "c", object: "chat.completion", created: 1, model, choices: [{ index: 0, message }] };
}

const ask = (path: string, token: string, model: string, key: string) =>
  send(server, "POST", path, {
    body: JSON.stringify({ model, max_tokens: 9, messages: [{ role: "user", content: "hi" }] }),
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${token}`,
      "gw-aig-cache-key": key,
      "anthropic-version": "2023-06-01",
    },
  });

describe.each([
  ["a provider's own path", "/v1/default/default/openai/chat/completions", ""],
  ["a door to the same dialect", "/v1/chat/completions", "openai/"],
  ["a door to Anthropic, translated", "/v1/chat/completions", "anthropic/"],
  ["a door to Gemini, translated", "/v1/chat/completions", "google-ai-studio/"],
  ["the messages door to OpenAI, translated", "/v1/messages", "openai/"],
])("at %s", (name, path, prefix) => {
  it("the stored response of another model is not returned", async () => {
    const first = await ask(path, full, `${prefix}large`, name);
    expect([first.status, first.body]).toEqual([200, expect.stringContaining("secret of large")]);
    const stolen = await ask(path, limited, `${prefix}small`, name);
    expect([stolen.status, stolen.body]).toEqual([200, expect.stringContaining("secret of small")]);
    expect((await ask(path, limited, `${prefix}large`, name)).status).toBe(403);
    // Calls of the same model share the key.
    const again = await ask(path, full, `${prefix}small`, name);
    expect(again.headers["gw-aig-cache-status"]).toBe("HIT");
  });

  it("a call does not wait for one with the key and another model, and does not get its response", async () => {
    const arrived = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    provider.answer = async (request, response) => {
      if (/large/.test(request.url + request.body)) {
        arrived.resolve();
        await release.promise;
      }
      sendJson(response, 200, answerOf(request.url, request.body));
    };
    const leader = ask(path, full, `${prefix}large`, `${name}, together`);
    await arrived.promise;
    const follower = await ask(path, limited, `${prefix}small`, `${name}, together`);
    expect(follower.body).toContain("secret of small");
    release.resolve();
    expect((await leader).body).toContain("secret of large");
  });
});

it("a request that hides its models behind an alternative does not share a key with one that names one", async () => {
  const path = "/v1/default/default/openai/chat/completions";
  const sendBody = (token: string, body: object) =>
    send(server, "POST", path, {
      body: JSON.stringify(body),
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${token}`,
        "gw-aig-cache-key": "alt",
      },
    });
  const messages = [{ role: "user", content: "hi" }];
  provider.answer = (_, response) => sendJson(response, 200, { choices: [], text: "secret of large" });
  expect((await sendBody(full, { model: "small", models: ["large"], messages })).status).toBe(200);
  provider.answer = (_, response) => sendJson(response, 200, { choices: [], text: "small" });
  expect((await sendBody(limited, { model: "small", messages })).body).not.toContain("secret");
});
