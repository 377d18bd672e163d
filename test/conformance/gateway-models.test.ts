/** The listing of models at the unified doors. */
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { send } from "../support/gateway.ts";
import { end, model, start } from "../support/route-elements.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
/** Of a token without limits. */
let full: string;

beforeAll(async () => {
  server = await startTestServer({
    file: {
      gateway: {
        models: {
          smart: "anthropic/claude-opus-4-5",
          unreachable: "mistral/x",
          flow: "dynamic/flow",
          local: "vllm/llama",
          "gpt-4o": "groq/moved",
        },
        prices: { openai: { "my-tuned": { in: 1, out: 2, cached: 0.25 } } },
      },
    },
    environment: { OPENAI_API_KEY: "sk", ANTHROPIC_API_KEY: "sk-ant" },
  });
  for (const slug of ["openai", "anthropic"]) {
    await server.api("POST", "/accounts/default/ai-gateway/gateways/default/provider_configs", {
      provider_slug: slug,
      alias: "default",
      default_config: true,
      secret_id: `${slug.toUpperCase()}_API_KEY`,
    });
  }
  await server.api("POST", "/accounts/default/ai-gateway/gateways", { id: "bare" });
  await server.api("POST", `${GATEWAYS}/default/routes`, { name: "flow", elements: ROUTE });
  full = await createToken({});
});
afterAll(() => server.stop());

const GATEWAYS = "/accounts/default/ai-gateway/gateways";
const ROUTE = [start("claude-opus-4-5"), model("claude-opus-4-5", "anthropic"), end];

async function createToken(policy: object): Promise<string> {
  const { status, body } = await server.api("POST", "/accounts/default/tokens", {
    name: "caller",
    permissions: ["gateway.run"],
    ...policy,
  });
  expect(status).toBe(200);
  return (body as { result: { token: string } }).result.token;
}

interface Listed {
  readonly id: string;
  readonly owned_by: string;
  readonly context_window?: number;
  readonly pricing?: Readonly<Record<string, string>>;
}

async function list(
  path: string,
  headers: Record<string, string> = { "x-api-key": full },
): Promise<Listed[]> {
  const answer = await send(server, "GET", path, { headers });
  expect([answer.status, answer.status === 200 ? "" : answer.body]).toEqual([200, ""]);
  return (JSON.parse(answer.body) as { data: Listed[] }).data;
}

describe("OpenAI's format", () => {
  it.each(["/v1/models", "/v1/default/default/compat/models", "/v1/default/default/compat/v1/models"])(
    "%s lists what a key exists for, with context and price",
    async (path) => {
      const models = await list(path);
      const byId = new Map(models.map((model) => [model.id, model]));
      expect(byId.size).toBe(models.length);
      expect(new Set(models.map((model) => model.owned_by))).toEqual(
        new Set(["openai", "anthropic", "echo", "vllm", "dynamic"]),
      );
      expect(byId.get("openai/gpt-4o-mini")).toMatchObject({
        object: "model",
        owned_by: "openai",
        context_window: 128000,
        pricing: { prompt: "0.00000015", completion: "0.0000006", input_cache_read: "0.000000075" },
      });
      expect(byId.get("openai/my-tuned")?.pricing).toEqual({
        prompt: "0.000001",
        completion: "0.000002",
        input_cache_read: "0.00000025",
      });
      expect(byId.get("smart")).toMatchObject({ owned_by: "anthropic", pricing: { prompt: "0.000005" } });
      expect([byId.has("unreachable"), byId.has("flow"), byId.has("local")]).toEqual([false, true, true]);
    },
  );

  it("lists nothing but what needs no key on a gateway without keys", async () => {
    const models = await list("/v1/models", { "gw-aig-gateway-id": "bare", "x-api-key": full });
    expect(models.map(({ id }) => id).toSorted()).toEqual(["echo/echo", "local"]);
  });

  it("is read by OpenAI's client, also one model", async () => {
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: full, maxRetries: 0 });
    const ids: string[] = [];
    for await (const model of client.models.list()) ids.push(model.id);
    expect(ids).toContain("anthropic/claude-opus-4-5");
    expect(await client.models.retrieve("openai/gpt-4o-mini")).toMatchObject({ id: "openai/gpt-4o-mini" });
    await expect(client.models.retrieve("nowhere/x")).rejects.toBeInstanceOf(OpenAI.NotFoundError);
    expect((await send(server, "POST", "/v1/models")).status).toBe(405);
  });
});

describe("Anthropic's format", () => {
  const client = () => new Anthropic({ baseURL: server.url, apiKey: full, maxRetries: 0 });

  it("has the bare names of models that need no provider before them", async () => {
    const ids: string[] = [];
    for await (const model of client().models.list()) {
      expect(model).toMatchObject({ type: "model", display_name: expect.any(String) });
      ids.push(model.id);
    }
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toEqual(expect.arrayContaining(["claude-opus-4-5", "smart", "gpt-4o-mini"]));
    // The bare name is an alias of another model.
    expect(ids).toContain("openai/gpt-4o");
  });

  it("has pages", async () => {
    const page = await client().models.list({ limit: 2 });
    expect([page.data.length, page.has_more]).toEqual([2, true]);
    const next = await client().models.list({ limit: 2, after_id: page.last_id ?? "" });
    expect(next.data[0]?.id).not.toBe(page.data[0]?.id);
    const back = await client().models.list({ limit: 2, before_id: next.first_id ?? "" });
    expect(back.data).toEqual(page.data);
    await expect(client().models.list({ limit: 0 })).rejects.toBeInstanceOf(Anthropic.BadRequestError);
  });

  it("finds one model by either name", async () => {
    for (const id of ["claude-opus-4-5", "anthropic/claude-opus-4-5"]) {
      expect(await client().models.retrieve(id)).toMatchObject({ type: "model", id });
    }
    const error = await client()
      .models.retrieve("nothing")
      .catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(Anthropic.NotFoundError);
    expect((error as InstanceType<typeof Anthropic.NotFoundError>).error).toMatchObject({
      type: "error",
      error: { type: "not_found_error" },
    });
  });
});

describe("only what the caller can call is listed", () => {
  const idsFor = async (headers: Record<string, string>, path = "/v1/models") =>
    (await list(path, headers)).map(({ id }) => id);
  const owners = async (headers: Record<string, string>) =>
    [...new Set((await list("/v1/models", headers)).map((model) => model.owned_by))].toSorted();

  it("without a token nothing that needs a stored key, at every door", async () => {
    for (const path of [
      "/v1/models",
      "/v1/default/default/compat/models",
      "/accounts/default/ai/v1/models",
    ]) {
      const ids = await idsFor({}, path);
      expect(ids.toSorted()).toEqual(["echo/echo", "local"]);
    }
    for (const id of ["openai/gpt-4o-mini", "smart", "flow", "dynamic/flow"]) {
      expect((await send(server, "GET", `/v1/models/${id}`)).status).toBe(404);
    }
    const anthropic = await send(server, "GET", "/v1/models", {
      headers: { "anthropic-version": "2023-06-01" },
    });
    expect((JSON.parse(anthropic.body) as { data: Listed[] }).data.map(({ id }) => id)).toEqual([
      "local",
      "echo",
    ]);
  });

  it("without a token everything on a gateway that gives its keys to everybody", async () => {
    const path = "/accounts/default/ai-gateway/gateways/default";
    await server.api("PUT", path, { allow_anonymous_keys: true });
    try {
      expect(await owners({})).toEqual(["anthropic", "dynamic", "echo", "openai", "vllm"]);
    } finally {
      await server.api("PUT", path, { allow_anonymous_keys: false });
    }
  });

  it("with a key of the caller the models of the SDK's provider, because the key is sent there", async () => {
    const own = { authorization: "Bearer sk-of-the-caller" };
    expect(await owners(own)).toEqual(["echo", "openai", "vllm"]);
    // The gateway without stored keys serves such a caller as well.
    expect(await owners({ ...own, "gw-aig-gateway-id": "bare" })).toEqual(["echo", "openai", "vllm"]);
    const messages = await idsFor({ "x-api-key": "sk-ant-own", "anthropic-version": "2023-06-01" });
    expect(messages).toContain("claude-opus-4-5");
    expect(messages.filter((id) => id.includes("gpt"))).toEqual([]);
  });

  it("with both, a stored key is used for names that do not send the caller's key", async () => {
    const both = { authorization: "Bearer sk-of-the-caller", "gw-aig-authorization": `Bearer ${full}` };
    const ids = await idsFor(both);
    expect(ids).toEqual(expect.arrayContaining(["openai/gpt-4o-mini", "claude-opus-4-5", "smart", "flow"]));
    // It would send a key of OpenAI to Anthropic.
    expect(ids).not.toContain("anthropic/claude-opus-4-5");
  });

  it("by the models, providers and kinds of calls of the token", async () => {
    const models = await createToken({ models: ["openai/gpt-4o*"] });
    const ids = await idsFor({ authorization: `Bearer ${models}` });
    expect(ids).toContain("openai/gpt-4o-mini");
    expect(ids.filter((id) => !id.startsWith("openai/gpt-4o"))).toEqual([]);
    expect(await owners({ "x-api-key": await createToken({ providers: ["anthropic"] }) })).toEqual([
      "anthropic",
      "dynamic",
    ]);
    const embeddings = await owners({ "x-api-key": await createToken({ routes: ["embeddings"] }) });
    expect(embeddings).not.toContain("anthropic");
    expect(await owners({ "x-api-key": await createToken({ routes: ["images"] }) })).toEqual([]);
  });

  it("by the stored key that the caller names", async () => {
    const named = { "x-api-key": full, "gw-aig-byok-alias": "default" };
    expect(await owners(named)).toEqual(["anthropic", "dynamic", "openai"]);
    expect(await owners({ ...named, "gw-aig-byok-alias": "other" })).toEqual([]);
  });

  it("nothing for a stranger on a gateway with authentication", async () => {
    await server.api("POST", GATEWAYS, { id: "closed", authentication: true });
    const headers = { "gw-aig-gateway-id": "closed" };
    expect((await send(server, "GET", "/v1/models", { headers })).status).toBe(401);
    const own = { ...headers, authorization: "Bearer sk-of-the-caller" };
    expect((await send(server, "GET", "/v1/models", { headers: own })).status).toBe(401);
  });
});
