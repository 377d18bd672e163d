/** Endpoints of the doors that are not translated: images, sound, moderations, rankings, files and batches; and paths that do not exist. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { readLogs, send } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let peer: ProviderPeer;
let server: TestServer;

beforeAll(async () => {
  peer = await startProvider((_, response) => sendJson(response, 200, { ok: true, data: [] }));
  const at = (path: string) => ({ baseUrl: peer.url + path });
  server = await startTestServer({
    file: {
      gateway: { models: { pictures: "openai/dall-e-3" }, replayBodyBytes: 64 * 1024 },
      providers: {
        openai: at("/openai/v1"),
        groq: at("/groq/v1"),
        cohere: at("/cohere"),
        anthropic: at("/anthropic/v1"),
        "azure-openai": at("/azure"),
      },
    },
    environment: { OPENAI_API_KEY: "sk-stored" },
  });
  await server.api("PUT", "/accounts/default/ai-gateway/gateways/default", { allow_anonymous_keys: true });
  await server.api("POST", "/accounts/default/ai-gateway/gateways/default/provider_configs", {
    provider_slug: "openai",
    alias: "default",
    default_config: true,
    secret_id: "OPENAI_API_KEY",
  });
});

beforeEach(() => {
  peer.requests.length = 0;
});

afterAll(async () => {
  await server.stop();
  await peer.close();
});

function json(path: string, body: object, headers: Record<string, string> = {}) {
  return send(server, "POST", path, {
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", ...headers },
  });
}

const BOUNDARY = "----limit";
const FORM = { "content-type": `multipart/form-data; boundary=${BOUNDARY}` };

function form(...fields: readonly (readonly [name: string, value: string])[]): string {
  const parts = fields.map(
    ([name, value]) =>
      `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"${name === "file" ? '; filename="a.wav"' : ""}\r\n\r\n${value}\r\n`,
  );
  return `${parts.join("")}--${BOUNDARY}--\r\n`;
}

describe("the model names the provider", () => {
  it.each([
    ["images/generations", "openai/gpt-image-1", "/openai/v1/images/generations", "gpt-image-1"],
    ["images/generations", "pictures", "/openai/v1/images/generations", "dall-e-3"],
    ["audio/speech", "tts-1", "/openai/v1/audio/speech", "tts-1"],
    ["moderations", "omni-moderation-latest", "/openai/v1/moderations", "omni-moderation-latest"],
    ["completions", "openai/gpt-3.5-turbo-instruct", "/openai/v1/completions", "gpt-3.5-turbo-instruct"],
    ["rerank", "cohere/rerank-v3.5", "/cohere/v2/rerank", "rerank-v3.5"],
    ["rerank", "rerank-v3.5", "/cohere/v2/rerank", "rerank-v3.5"],
    ["audio/speech", "groq/playai-tts", "/groq/v1/audio/speech", "playai-tts"],
    ["images/generations", "azure/my-images", "/azure/openai/v1/images/generations", "my-images"],
  ])("of %s with %s", async (endpoint, name, url, model) => {
    for (const base of ["/v1", "/v1/default/default/compat", "/accounts/default/ai/v1"]) {
      peer.requests.length = 0;
      const answer = await json(`${base}/${endpoint}`, { prompt: "a", input: "b", model: name, odd: 1 });
      expect([base, answer.status]).toEqual([base, 200]);
      const [seen] = peer.requests;
      expect(seen?.url).toBe(url);
      expect(seen?.body).toBe(JSON.stringify({ prompt: "a", input: "b", model, odd: 1 }));
      expect(answer.headers["gw-aig-model"]).toBe(model);
    }
  });

  it("of a form, of which no other byte changes", async () => {
    const fields = (model: string) =>
      form(["file", "RIFF\u0000name=model"], ["model", model], ["language", "de"]);
    const answer = await send(server, "POST", "/v1/audio/transcriptions", {
      body: fields("groq/whisper-large-v3"),
      headers: { ...FORM, authorization: "Bearer gsk-own" },
    });
    expect(answer.status).toBe(200);
    expect(peer.requests[0]).toMatchObject({
      url: "/groq/v1/audio/transcriptions",
      body: fields("whisper-large-v3"),
      headers: { authorization: "Bearer gsk-own", "content-type": FORM["content-type"] },
    });
    const [row] = await readLogs(server);
    expect(row).toMatchObject({ provider: "groq", model: "whisper-large-v3" });
  });

  it("and a request without a model goes to OpenAI, which has a default", async () => {
    expect((await json("/v1/moderations", { input: "x" })).status).toBe(200);
    expect(peer.requests[0]).toMatchObject({ url: "/openai/v1/moderations", body: '{"input":"x"}' });
    expect(peer.requests[0]?.headers.authorization).toBe("Bearer sk-stored");
  });

  it("of a form that is too large to be kept, if the model comes first", async () => {
    const sound = "x".repeat(200_000);
    const large = (body: string) => send(server, "POST", "/v1/audio/transcriptions", { body, headers: FORM });
    const first = await large(form(["model", "openai/whisper-1"], ["file", sound]));
    expect(first.status).toBe(200);
    expect(peer.requests[0]?.body).toBe(form(["model", "whisper-1"], ["file", sound]));
    const last = await large(form(["file", sound], ["model", "openai/whisper-1"]));
    expect([last.status, JSON.parse(last.body).error.code]).toEqual([413, "2010"]);
  });

  it.each([
    ["two models", form(["model", "openai/whisper-1"], ["model", "openai/gpt-4o-transcribe"], ["file", "x"])],
    ["an unknown provider", form(["model", "nowhere/x"], ["file", "x"])],
  ])("and a form with %s is refused", async (_, body) => {
    const answer = await send(server, "POST", "/v1/audio/transcriptions", { body, headers: FORM });
    expect(answer.status).toBe(400);
    expect(peer.requests).toEqual([]);
  });

  it("and a provider without the endpoint is named in the refusal", async () => {
    const answer = await json("/v1/images/generations", { model: "anthropic/claude-opus-5", prompt: "x" });
    expect([answer.status, JSON.parse(answer.body).error.message]).toEqual([
      400,
      "anthropic has no API for images/generations that this door can use",
    ]);
  });
});

describe("files, batches and stored responses", () => {
  it.each([
    ["GET", "files?limit=2", {}, "/openai/v1/files?limit=2"],
    ["GET", "files/file-1/content", {}, "/openai/v1/files/file-1/content"],
    ["DELETE", "files/file-1", {}, "/openai/v1/files/file-1"],
    ["GET", "batches", {}, "/openai/v1/batches"],
    ["POST", "batches/batch_1/cancel", {}, "/openai/v1/batches/batch_1/cancel"],
    ["GET", "responses/resp_1", {}, "/openai/v1/responses/resp_1"],
    ["GET", "responses/resp_1/input_items", {}, "/openai/v1/responses/resp_1/input_items"],
    ["GET", "files/file-1", { "gw-aig-provider": "groq" }, "/groq/v1/files/file-1"],
    ["GET", "files/file_1", { "anthropic-version": "2023-06-01" }, "/anthropic/v1/files/file_1"],
    ["GET", "messages/batches/msgbatch_1/results", {}, "/anthropic/v1/messages/batches/msgbatch_1/results"],
  ])("%s %s with %j is %s", async (method, path, headers, url) => {
    const answer = await send(server, method, `/v1/${path}`, { headers });
    expect(answer.status).toBe(200);
    expect(peer.requests.map((seen) => [seen.method, seen.url])).toEqual([[method, url]]);
  });

  it("are stored with the body of the client", async () => {
    const upload = form(["purpose", "batch"], ["file", '{"custom_id":"1"}\n']);
    expect((await send(server, "POST", "/v1/files", { body: upload, headers: FORM })).status).toBe(200);
    expect((await json("/v1/batches", { input_file_id: "file-1" })).status).toBe(200);
    expect(peer.requests.map(({ url, body }) => [url, body])).toEqual([
      ["/openai/v1/files", upload],
      ["/openai/v1/batches", '{"input_file_id":"file-1"}'],
    ]);
  });

  it("of an unknown provider, or one without them, are refused", async () => {
    for (const slug of ["nowhere", "cohere"]) {
      const answer = await send(server, "GET", "/v1/files", { headers: { "gw-aig-provider": slug } });
      expect([slug, answer.status]).toEqual([slug, 400]);
    }
  });
});

describe("a path that does not exist says what does", () => {
  it.each(["/v1/chat/nothing", "/v1/images/nothing", "/v1/files/a/b/c", "/v1/responses/a/b"])(
    "%s",
    async (path) => {
      const answer = await json(path, {});
      expect(answer.status).toBe(404);
      const { error } = JSON.parse(answer.body) as { error: { code: string; message: string } };
      expect(error.code).toBe("7003");
      expect(error.message).toContain("chat/completions, responses, messages");
      expect(error.message).toContain("/v1/{account_id}/{gateway_id}/{provider}/");
    },
  );

  it.each(["/v1/assistants", "/v1/vector_stores/vs_1", "/v1/default/nothing/openai/models"])(
    "%s, which is no gateway",
    async (path) => {
      const answer = await json(path, {});
      expect([answer.status, JSON.parse(answer.body).internalCode]).toEqual([400, 2001]);
      expect(JSON.parse(answer.body).message).toContain("chat/completions, responses, messages");
    },
  );

  it.each(["/v1/files/../models", "/v1/files/..", "/v1/responses/%2e%2e"])("%s is none", async (path) => {
    expect((await send(server, "GET", path)).status).toBeGreaterThanOrEqual(400);
    expect(peer.requests).toEqual([]);
  });
});
