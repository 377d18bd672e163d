/** The unified doors: paths, names of models, tokens, keys and errors. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { anthropic, ANTHROPIC_KEY } from "../peers/anthropic.ts";
import { openAi, OPENAI_KEY } from "../peers/openai.ts";
import { type ProviderPeer, startProvider } from "../peers/provider.ts";
import { readLogs, send, setGateway } from "../support/gateway.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let openAiPeer: ProviderPeer;
let anthropicPeer: ProviderPeer;
let server: TestServer;

beforeAll(async () => {
  [openAiPeer, anthropicPeer] = await Promise.all([startProvider(openAi), startProvider(anthropic)]);
  server = await startTestServer({
    file: {
      gateway: {
        auto: { models: ["openai/gpt-small", "anthropic/claude-opus-5"] },
        hosts: { "ai.example.com": "default/hosted" },
        models: {
          smart: "anthropic/claude-opus-5",
          "house-*": "openai/*",
          "moved/*": "openai/*",
          flow: "dynamic/flow",
        },
      },
      providers: {
        openai: { baseUrl: openAiPeer.url },
        anthropic: { baseUrl: anthropicPeer.url },
        groq: { baseUrl: `${openAiPeer.url}/v1` },
        grok: { baseUrl: `${openAiPeer.url}/v1` },
        "workers-ai": { baseUrl: `${openAiPeer.url}/client/v4` },
      },
    },
    environment: { OPENAI_API_KEY: OPENAI_KEY, ANTHROPIC_API_KEY: ANTHROPIC_KEY },
  });
  await server.api("PUT", "/accounts/default/ai-gateway/gateways/default", { allow_anonymous_keys: true });
  for (const provider of ["openai", "anthropic"]) {
    await server.api("POST", "/accounts/default/ai-gateway/gateways/default/provider_configs", {
      provider_slug: provider,
      alias: "default",
      default_config: true,
      secret_id: `${provider.toUpperCase()}_API_KEY`,
    });
  }
});

beforeEach(() => {
  openAiPeer.requests.length = 0;
  anthropicPeer.requests.length = 0;
});

afterAll(async () => {
  await server.stop();
  await openAiPeer.close();
  await anthropicPeer.close();
});

const MESSAGES = [{ role: "user", content: "Hello" }];

function call(path: string, body: unknown, headers: Record<string, string> = {}) {
  return send(server, "POST", path, {
    body: typeof body === "string" ? body : JSON.stringify(body),
    headers: { "content-type": "application/json", ...headers },
  });
}

const PATHS = [
  "/v1",
  "/v1/default/default/compat",
  "/v1/default/default/compat/v1",
  "/accounts/default/ai/v1",
];

describe("paths", () => {
  it.each([...PATHS, "/client/v4/accounts/default/ai/v1"])(
    "%s takes chat completions, responses and embeddings",
    async (base) => {
      for (const [path, body] of [
        ["chat/completions", { model: "openai/gpt-4o-mini", messages: MESSAGES }],
        ["responses", { model: "openai/gpt-4o-mini", input: "Hello" }],
        ["embeddings", { model: "openai/text-embedding-3-small", input: "Hello" }],
      ] as const) {
        const answer = await call(`${base}/${path}`, body);
        expect([path, answer.status]).toEqual([path, 200]);
        expect(answer.headers["gw-aig-provider"]).toBe("openai");
        expect(answer.headers["gw-aig-model"]).toBe(body.model.slice(7));
        expect(openAiPeer.requests.at(-1)?.url).toBe(`/v1/${path}`);
      }
    },
  );

  it.each(PATHS)("%s takes messages, also with Anthropic's query", async (base) => {
    const body = { model: "anthropic/claude-opus-5", max_tokens: 5, messages: MESSAGES };
    const answer = await call(`${base}/messages`, body);
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.body)).toMatchObject({ type: "message", model: "claude-opus-5" });
    anthropicPeer.requests.length = 0;
    await call(`${base}/messages?beta=true`, body);
    expect(anthropicPeer.requests[0]?.url).toBe("/v1/messages?beta=true");
  });

  it("answers HEAD / and unknown endpoints of a door", async () => {
    expect((await send(server, "HEAD", "/")).status).toBeLessThan(400);
    const unknown = await call("/v1/chat/nothing", {});
    expect(unknown.status).toBe(404);
    expect(JSON.parse(unknown.body)).toMatchObject({ error: { type: "gateway_error", code: "7003" } });
    const wrong = await send(server, "GET", "/v1/chat/completions");
    expect([wrong.status, wrong.headers["allow"]]).toEqual([405, "POST"]);
  });

  it("keeps the words of the doors from being accounts", async () => {
    for (const id of ["chat", "messages", "models", "responses", "embeddings"]) {
      expect((await server.api("POST", "/accounts", { id })).status).toBe(400);
    }
  });

  it("finds the gateway by header, and an account's other gateways not at all", async () => {
    const body = { model: "echo/echo", messages: MESSAGES };
    await server.api("POST", "/accounts/default/ai-gateway/gateways", { id: "second" });
    const before = (await readLogs(server, "second")).length;
    for (const name of ["gw-aig-gateway-id", "cf-aig-gateway-id"]) {
      expect((await call("/v1/chat/completions", body, { [name]: "second" })).status).toBe(200);
      expect((await call("/accounts/default/ai/v1/chat/completions", body, { [name]: "no" })).status).toBe(
        400,
      );
    }
    expect(await readLogs(server, "second")).toHaveLength(before + 2);
  });
});

describe("the same dialect on both sides", () => {
  it("replaces the name of the model and no other byte", async () => {
    const body = `{ "messages": [{"role":"user","content":"Grüße \\u00e9"}],\n "unknown": {"model":"kept", "n": 1.0},  "model" : "openai/gpt-4o-mini" , "x":1e3 }`;
    const answer = await call("/v1/chat/completions", body, { "openai-beta": "x=1" });
    expect(answer.status).toBe(200);
    expect(openAiPeer.requests[0]?.body).toBe(body.replace("openai/gpt-4o-mini", "gpt-4o-mini"));
    expect(openAiPeer.requests[0]?.headers["openai-beta"]).toBe("x=1");
  });

  it("passes cache marks and betas of messages", async () => {
    const body = `{"model":"smart","max_tokens":9,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[]}`;
    await call("/v1/messages", body, { "anthropic-beta": "context-1m" });
    expect(anthropicPeer.requests[0]?.body).toBe(body.replace("smart", "claude-opus-5"));
    expect(anthropicPeer.requests[0]?.headers).toMatchObject({
      "anthropic-beta": "context-1m",
      "anthropic-version": "2023-06-01",
    });
  });

  it("streams events as they are", async () => {
    const answer = await call("/v1/chat/completions", {
      model: "openai/gpt-4o-mini",
      stream: true,
      messages: MESSAGES,
    });
    expect(answer.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
    expect(answer.body).toMatch(/"content":"Hello"[\s\S]*data: \[DONE\]\n\n$/);
  });

  it("streams a body that is larger than what is buffered", async () => {
    const small = await startTestServer({
      file: {
        gateway: { replayBodyBytes: 1024 },
        providers: { openai: { baseUrl: openAiPeer.url }, anthropic: { baseUrl: anthropicPeer.url } },
      },
    });
    try {
      const content = "x".repeat(50_000);
      const large = (model: string) =>
        send(small, "POST", "/v1/chat/completions", {
          body: JSON.stringify({ model, messages: [{ role: "user", content }] }),
          headers: { "content-type": "application/json", authorization: `Bearer ${OPENAI_KEY}` },
        });
      expect((await large("openai/gpt-4o-mini")).status).toBe(200);
      expect(JSON.parse(openAiPeer.requests[0]?.body ?? "")).toEqual({
        model: "gpt-4o-mini",
        messages: [{ role: "user", content }],
      });
      const translated = await large("anthropic/claude-opus-5");
      expect([translated.status, JSON.parse(translated.body).error.code]).toEqual([413, "2010"]);
    } finally {
      await small.stop();
    }
  });
});

describe("names of models", () => {
  it.each([
    ["openai/gpt-4o-mini", "openai", "gpt-4o-mini"],
    ["house-model", "openai", "house-model"],
    ["moved/gpt-x", "openai", "gpt-x"],
    ["gpt-5", "openai", "gpt-5"],
    ["xai/grok-4", "grok", "grok-4"],
    ["groq/meta-llama/llama-4", "groq", "meta-llama/llama-4"],
  ])("%s is %s's %s", async (name, provider, model) => {
    const answer = await call("/v1/chat/completions", { model: name, messages: MESSAGES });
    expect([answer.headers["gw-aig-provider"], answer.headers["gw-aig-model"]]).toEqual([provider, model]);
    expect(JSON.parse(openAiPeer.requests[0]?.body ?? "").model).toBe(model);
  });

  it("reaches Workers AI's models by their names", async () => {
    for (const name of ["@cf/meta/llama-3", "workers-ai/@cf/meta/llama-3", "cloudflare/@cf/meta/llama-3"]) {
      const answer = await call("/v1/chat/completions", { model: name, messages: MESSAGES });
      expect(answer.headers["gw-aig-provider"]).toBe("workers-ai");
      expect(JSON.parse(openAiPeer.requests.at(-1)?.body ?? "").model).toBe("@cf/meta/llama-3");
    }
    expect(openAiPeer.requests[0]?.url).toBe("/client/v4/accounts/default/ai/v1/chat/completions");
  });

  it.each(["nonsense", "nowhere/gpt", "openai/", "/gpt", "constructor/x"])("refuses %s", async (model) => {
    const answer = await call("/v1/chat/completions", { model, messages: MESSAGES });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body).error).toMatchObject({
      code: "2008",
      param: "model",
      type: "gateway_error",
    });
  });

  it.each(["dynamic/flow", "flow"])("refuses the route %s that does not exist", async (model) => {
    const answer = await call("/v1/chat/completions", { model, messages: MESSAGES });
    expect([answer.status, JSON.parse(answer.body).error.code]).toEqual([400, "2044"]);
  });

  it.each(["{}", '{"model":1}', '{"model":""}', "[]", "nonsense"])("refuses the body %s", async (body) => {
    for (const path of ["chat/completions", "messages", "responses", "embeddings", "messages/count_tokens"]) {
      const answer = await call(`/v1/${path}`, body);
      expect([path, answer.status]).toEqual([path, 400]);
      expect(JSON.parse(answer.body).error.code).toBe("2002");
    }
  });
});

describe("tokens and keys", () => {
  const body = { model: "openai/gpt-4o-mini", messages: MESSAGES };

  it("takes the token where SDKs put their key, and never forwards it", async () => {
    await setGateway(server, { authentication: true });
    try {
      const token = await server.token(["gateway.run"]);
      for (const headers of [
        { authorization: `Bearer ${token}` },
        { "x-api-key": token },
        { "api-key": token },
        { "x-goog-api-key": token },
        { "gw-aig-authorization": `Bearer ${token}` },
        { "gw-aig-authorization": `Bearer ${ROOT_TOKEN}` },
      ] as Record<string, string>[]) {
        openAiPeer.requests.length = 0;
        expect((await call("/v1/chat/completions", body, headers)).status).toBe(200);
        expect(openAiPeer.requests[0]?.headers.authorization).toBe(`Bearer ${OPENAI_KEY}`);
        expect(JSON.stringify(openAiPeer.requests)).not.toContain(token);
      }
      const other = await server.token(["gateway.read"]);
      const wrong: Record<string, string>[] = [
        {},
        { authorization: `Bearer ${other}` },
        { authorization: "Bearer sk-x" },
        { authorization: `Bearer ${ROOT_TOKEN}` },
      ];
      for (const headers of wrong) {
        const refused = await call("/v1/chat/completions", body, headers);
        const { error } = JSON.parse(refused.body) as { error: { code: string; message: string } };
        expect([refused.status, error.code]).toEqual([401, "2009"]);
        expect(error.message).toContain("`signalbox gateway token default` creates one");
        const listing = await send(server, "GET", "/v1/models", { headers });
        expect(listing.status).toBe(401);
      }
    } finally {
      await setGateway(server, { authentication: false });
    }
  });

  it("gives the caller's own key to the provider that the caller names, in the provider's header", async () => {
    await call("/v1/chat/completions", body, { authorization: "Bearer sk-own" });
    expect(openAiPeer.requests[0]?.headers.authorization).toBe("Bearer sk-own");
    await call(
      "/v1/messages",
      { model: "anthropic/claude-opus-5", max_tokens: 1, messages: MESSAGES },
      { authorization: "Bearer oat-own" },
    );
    expect(anthropicPeer.requests[0]?.headers.authorization).toBe("Bearer oat-own");
    expect(anthropicPeer.requests[0]?.headers["x-api-key"]).toBeUndefined();
  });

  it("does not give a key to a provider that an alias chose", async () => {
    await call(
      "/v1/messages",
      { model: "house-model", max_tokens: 1, messages: MESSAGES },
      { "x-api-key": "sk-ant-own" },
    );
    expect(JSON.stringify(openAiPeer.requests)).not.toContain("sk-ant-own");
  });

  it("refuses a token in the query", async () => {
    const token = await server.token(["gateway.run"]);
    expect((await call(`/v1/chat/completions?model=${token}`, body)).status).toBe(401);
  });
});

describe("errors", () => {
  const body = { model: "nowhere/x", messages: MESSAGES };

  it("have the form that the door's SDK reads", async () => {
    const chat = await call("/v1/chat/completions", body);
    expect(JSON.parse(chat.body)).toEqual({
      error: {
        message: expect.stringContaining("nowhere/x"),
        type: "gateway_error",
        param: "model",
        code: "2008",
      },
    });
    expect(chat.headers["gw-aig-error-origin"]).toBe("gateway");
    const messages = await call("/v1/messages", body);
    expect(JSON.parse(messages.body)).toEqual({
      type: "error",
      error: { type: "invalid_request_error", message: expect.stringContaining("nowhere/x"), code: "2008" },
      request_id: messages.headers["x-request-id"],
    });
    const compat = await call("/v1/default/default/compat/messages", body);
    expect(JSON.parse(compat.body)).toMatchObject({ error: [{ code: 2008 }], name: "AiGatewayError" });
  });

  it("have that form also when a call is under way", async () => {
    const unreachable = await startTestServer({
      file: { providers: { openai: { baseUrl: "http://127.0.0.1:1/v1" } } },
    });
    try {
      const answer = await send(unreachable, "POST", "/v1/chat/completions", {
        body: JSON.stringify({ model: "openai/x", messages: MESSAGES }),
        headers: { "content-type": "application/json" },
      });
      expect([answer.status, JSON.parse(answer.body).error.code]).toEqual([502, "2005"]);
    } finally {
      await unreachable.stop();
    }
  });
});

it("shows both dialects in the row of a call", async () => {
  await call("/v1/chat/completions", { model: "openai/gpt-4o-mini", messages: MESSAGES });
  const [row] = await readLogs(server);
  expect(row).toMatchObject({
    provider: "openai",
    model: "gpt-4o-mini",
    client_dialect: "chat",
    provider_dialect: "chat",
    tokens_in: 12,
    tokens_out: 7,
  });
  expect(row).not.toHaveProperty("dropped");
});

describe("a host name that stands for a gateway", () => {
  const host = { host: "ai.example.com:8443" };

  beforeAll(async () => {
    await setGateway(server, { authentication: true }, "hosted");
  });

  it("has the providers, the doors and the universal endpoint of its gateway at its paths", async () => {
    const authorized = {
      ...host,
      "gw-aig-authorization": `Bearer ${ROOT_TOKEN}`,
      authorization: "Bearer sk",
    };
    const chat = { model: "echo", messages: MESSAGES };
    for (const [path, body] of [
      ["/echo/chat/completions", chat],
      ["/compat/chat/completions", { ...chat, model: "echo/echo" }],
      ["/v1/chat/completions", { ...chat, model: "echo/echo" }],
      ["/", [{ provider: "echo", endpoint: "chat/completions", query: chat }]],
    ] as const) {
      const answer = await call(path, body, authorized);
      expect([path, answer.status]).toEqual([path, 200]);
    }
    const rows = await readLogs(server, "hosted");
    expect(rows.map(({ provider }) => provider)).toEqual(["echo", "echo", "echo", "echo"]);
  });

  it("needs the token of its gateway, and leads to nothing else of the service", async () => {
    const refused = await call("/echo/chat/completions", { model: "echo", messages: MESSAGES }, host);
    expect(refused.status).toBe(401);
    const root = { ...host, authorization: `Bearer ${ROOT_TOKEN}` };
    for (const path of [
      "/accounts",
      "/accounts/default/tokens",
      "/livez",
      "/v1/default/default/echo/models",
    ]) {
      const answer = await send(server, "GET", path, { headers: root });
      expect([path, answer.status >= 400, answer.headers["content-type"]?.includes("html")]).toEqual([
        path,
        true,
        false,
      ]);
    }
    const { authorization } = root;
    expect((await send(server, "GET", "/accounts", { headers: { authorization } })).status).toBe(200);
  });
});

describe("the auto router", () => {
  const TOOL = {
    type: "function",
    function: { name: "look", parameters: { type: "object", properties: {} } },
  };
  const HARD = { reasoning_effort: "high" };
  const ask = async (body: object, headers: Record<string, string> = {}) => {
    const answer = await call(
      "/v1/chat/completions",
      { model: "cloudflare/auto", messages: MESSAGES, ...body },
      headers,
    );
    const { "gw-aig-routed-model": model, "gw-aig-routing-reason": reason } = answer.headers;
    return { ...answer, model, reason };
  };

  it("chooses by how difficult the request looks, and says what and why", async () => {
    const easy = await ask({});
    expect([easy.status, easy.model, easy.reason]).toEqual([
      200,
      "openai/gpt-small",
      "cost_optimal_within_pool",
    ]);
    expect(easy.headers["gw-aig-routing-decision-id"]).toMatch(/^[0-9A-Z]{26}$/);
    const hard = await ask(HARD);
    expect([hard.model, hard.headers["gw-aig-model"]]).toEqual(["anthropic/claude-opus-5", "claude-opus-5"]);
    const other = await call("/v1/messages", { model: "auto", max_tokens: 5, messages: MESSAGES });
    expect(other.headers["gw-aig-routed-model"]).toBe("openai/gpt-small");
  });

  it("keeps the model for a turn, and moves up with the next one if it must", async () => {
    const session = { "gw-aig-session-id": "s-1" };
    expect((await ask(HARD, session)).model).toBe("anthropic/claude-opus-5");
    const within = [...MESSAGES, { role: "assistant", content: "…" }];
    const again = await ask({ messages: within }, session);
    expect([again.model, again.reason]).toEqual(["anthropic/claude-opus-5", "turn_affinity"]);
    const loose = await ask({ messages: within }, { ...session, "gw-aig-no-session-affinity": "true" });
    expect(loose.model).toBe("openai/gpt-small");
    // A short conversation moves down with its next turn; a long one stays.
    const next = [...within, { role: "user", content: "Thanks" }];
    expect((await ask({ messages: next }, session)).model).toBe("openai/gpt-small");
    const named = { "gw-aig-session-id": "s-2", "gw-aig-turn-id": "t-1" };
    expect((await ask(HARD, named)).model).toBe("anthropic/claude-opus-5");
    expect((await ask({ messages: next }, named)).reason).toBe("turn_affinity");
    const long = [{ role: "user", content: "word ".repeat(6000) }];
    const stayed = await ask({ messages: long }, { ...named, "gw-aig-turn-id": "t-2" });
    expect([stayed.model, stayed.reason]).toEqual(["anthropic/claude-opus-5", "session_affinity"]);
  });

  it("chooses among what the caller allows", async () => {
    const only = await ask({}, { "gw-aig-allowed-providers": "anthropic" });
    expect([only.model, only.reason]).toEqual(["anthropic/claude-opus-5", "forced_by_candidate_pool"]);
    const added = await ask(HARD, { "cf-aig-allowed-models": "openai/*, openai/GPT-Large" });
    expect(added.model).toBe("openai/GPT-Large");
    const none = await ask({}, { "gw-aig-allowed-models": "groq/llama" });
    expect([none.status, JSON.parse(none.body).error.code]).toEqual([400, "2045"]);
    expect((await ask({}, { "gw-aig-allowed-models": "a b" })).status).toBe(400);
  });

  it("falls back to the other models, and keeps the one that answered", async () => {
    const { answer } = openAiPeer;
    openAiPeer.answer = (_, response) => void response.writeHead(500).end();
    try {
      const session = { "gw-aig-session-id": "s-3" };
      expect((await ask({ tools: [] }, session)).model).toBe("anthropic/claude-opus-5");
      expect((await ask({ tools: [TOOL] }, session)).reason).toBe("turn_affinity");
    } finally {
      openAiPeer.answer = answer;
    }
  });

  it("is in the list of models, and is held to the models of a token", async () => {
    const { body } = await send(server, "GET", "/v1/models");
    expect((JSON.parse(body) as { data: { id: string }[] }).data.map(({ id }) => id)).toContain(
      "cloudflare/auto",
    );
    const { body: minted } = await server.api("POST", "/accounts/default/tokens", {
      name: "only openai",
      permissions: ["gateway.run"],
      models: ["openai/*"],
    });
    const { token } = (minted as { result: { token: string } }).result;
    const held = await ask(HARD, { "gw-aig-authorization": `Bearer ${token}` });
    expect(held.model).toBe("openai/gpt-small");
  });
});
