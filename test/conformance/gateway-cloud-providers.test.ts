/** Azure OpenAI, Amazon Bedrock and Google Vertex AI: addresses, signatures and access tokens, through the doors and through their own paths. */
import { createHash, createHmac, generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { crc32 } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { type ProviderPeer, type ProviderRequest, sendJson, startProvider } from "../peers/provider.ts";
import { CHAT, post, readLogs, send, setGateway } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const AWS_ID = "AKIAIOSFODNN7EXAMPLE";
const AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const SERVICE_ACCOUNT = JSON.stringify({
  client_email: "robot@example.iam.gserviceaccount.com",
  private_key: privateKey.export({ type: "pkcs8", format: "pem" }),
});

let peer: ProviderPeer;
let server: TestServer;

const MESSAGE = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude",
  content: [{ type: "text", text: "Hello" }],
  stop_reason: "end_turn",
  usage: { input_tokens: 3, output_tokens: 2 },
};

async function storeKey(slug: string, name: string, gateway = "default"): Promise<void> {
  await server.api("POST", `/accounts/default/ai-gateway/gateways/${gateway}/provider_configs`, {
    provider_slug: slug,
    alias: "default",
    default_config: true,
    secret_id: name,
  });
}

beforeAll(async () => {
  peer = await startProvider(answer);
  const at = { baseUrl: peer.url };
  server = await startTestServer({
    file: {
      providers: {
        "aws-bedrock": { ...at, region: "eu-west-1" },
        "google-vertex-ai": { ...at, project: "proj", region: "europe-west4", tokenUrl: `${peer.url}/token` },
        "azure-openai": at,
      },
    },
    environment: {
      AWS_BEDROCK_API_KEY: `${AWS_ID}:${AWS_SECRET}`,
      GOOGLE_VERTEX_AI_API_KEY: SERVICE_ACCOUNT,
      AZURE_OPENAI_API_KEY: "azure-key",
      AWS_BEDROCK_API_KEY_MACHINE: '{"identity":"instance"}',
      AZURE_OPENAI_API_KEY_MACHINE: '{"identity":"managed_identity"}',
      AWS_EC2_METADATA_SERVICE_ENDPOINT: `${peer.url}/imds`,
      AZURE_POD_IDENTITY_AUTHORITY_HOST: `${peer.url}/azure-imds`,
      GOOGLE_VERTEX_AI_API_KEY_MACHINE: '{"identity":"metadata"}',
      GCE_METADATA_HOST: `127.0.0.1:${peer.port}/gce`,
    },
  });
  await server.api("PUT", "/accounts/default/ai-gateway/gateways/default", { allow_anonymous_keys: true });
  await storeKey("aws-bedrock", "AWS_BEDROCK_API_KEY");
  await storeKey("google-vertex-ai", "GOOGLE_VERTEX_AI_API_KEY");
  await storeKey("azure-openai", "AZURE_OPENAI_API_KEY");
});

beforeEach(() => {
  peer.requests.length = 0;
});

afterAll(async () => {
  await server.stop();
  await peer.close();
});

function answer(request: ProviderRequest, response: Parameters<ProviderPeer["answer"]>[1]): void {
  if (request.url === "/imds/latest/api/token") response.end("imds-token");
  else if (request.url === "/imds/latest/meta-data/iam/security-credentials/") response.end("role-1");
  else if (request.url === "/imds/latest/meta-data/iam/security-credentials/role-1") {
    const Expiration = new Date(Date.now() + 3_600_000).toISOString();
    sendJson(response, 200, {
      AccessKeyId: "ASIAMACHINE",
      SecretAccessKey: AWS_SECRET,
      Token: "session",
      Expiration,
    });
  } else if (request.url.startsWith("/gce/")) sendJson(response, 404, {});
  else if (request.url.startsWith("/azure-imds/")) {
    sendJson(response, 200, { access_token: "aad-token", expires_in: "3599" });
  } else if (request.url === "/token")
    sendJson(response, 200, { access_token: "ya29.token", expires_in: 3600 });
  else if (request.url.includes("invoke-with-response-stream")) {
    response.writeHead(200, { "content-type": "application/vnd.amazon.eventstream" });
    for (const event of EVENTS) response.write(frame(event));
    response.end();
  } else if (request.url.includes("/invoke") || request.url.includes("rawPredict"))
    sendJson(response, 200, MESSAGE);
  else if (request.url.includes("generateContent")) {
    sendJson(response, 200, { candidates: [{ content: { parts: [{ text: "Hi" }] }, finishReason: "STOP" }] });
  } else sendJson(response, 200, { id: "c", object: "chat.completion", model: "m", choices: [] });
}

const EVENTS = [
  { type: "message_start", message: { ...MESSAGE, content: [], stop_reason: null } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
  { type: "message_stop" },
];

/** An event of a model in a message of the binary event stream. */
function frame(event: object): Buffer {
  return message({ bytes: Buffer.from(JSON.stringify(event)).toString("base64") });
}

/** One message of the binary event stream, without headers. */
function message(payload: object): Buffer {
  const body = Buffer.from(JSON.stringify(payload));
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(16 + body.length, 0);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  const all = Buffer.concat([prelude, body]);
  const end = Buffer.alloc(4);
  end.writeUInt32BE(crc32(all));
  return Buffer.concat([all, end]);
}

function chat(model: string, rest: object = {}, headers: Record<string, string> = {}) {
  return send(server, "POST", "/v1/chat/completions", {
    body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }], ...rest }),
    headers: { "content-type": "application/json", ...headers },
  });
}

/** Computes the signature again, from what arrived. */
function expectSigned({ headers, url, body, method }: ProviderRequest): void {
  const [, day, region, names = "", signature] =
    /Credential=AKIAIOSFODNN7EXAMPLE\/(\d{8})\/([\w-]+)\/bedrock\/aws4_request, SignedHeaders=([\w;-]+), Signature=(\w+)$/.exec(
      headers.authorization ?? "",
    ) ?? [];
  expect([region, names]).toEqual(["eu-west-1", "host;x-amz-date"]);
  const sha = (text: string) => createHash("sha256").update(text).digest("hex");
  const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
  const date = String(headers["x-amz-date"]);
  const path = url.split("/").map(encodeURIComponent).join("/");
  const canonical = `${method}\n${path}\n\nhost:${headers.host}\nx-amz-date:${date}\n\n${names}\n${sha(body)}`;
  const text = `AWS4-HMAC-SHA256\n${date}\n${day}/${region}/bedrock/aws4_request\n${sha(canonical)}`;
  const key = ["eu-west-1", "bedrock", "aws4_request"].reduce(hmac, hmac(`AWS4${AWS_SECRET}`, day ?? ""));
  expect(hmac(key, text).toString("hex")).toBe(signature);
}

describe("Amazon Bedrock", () => {
  const MODEL = "us.anthropic.claude-opus-5-v1:0";

  it("has the betas of the caller in the body, without those that it would refuse", async () => {
    const ask = (beta: string, more: object = {}) =>
      send(server, "POST", "/v1/messages?beta=true", {
        body: JSON.stringify({
          model: `aws-bedrock/${MODEL}`,
          max_tokens: 9,
          messages: [{ role: "user", content: "Hi" }],
          ...more,
        }),
        headers: { "content-type": "application/json", ...(beta === "" ? {} : { "anthropic-beta": beta }) },
      });
    const answer = await ask("claude-code-20250219, effort-2025-11-24,context-1m-2025-08-07", {
      anthropic_beta: ["other"],
    });
    expect(answer.headers["gw-aig-dropped"]).toBe("anthropic-beta.claude-code-20250219");
    const [request] = peer.requests;
    if (request === undefined) throw new Error("no request");
    expectSigned(request);
    expect(request.headers).not.toHaveProperty("anthropic-beta");
    expect(JSON.parse(request.body)).toEqual({
      anthropic_beta: ["effort-2025-11-24", "context-1m-2025-08-07"],
      anthropic_version: "bedrock-2023-05-31",
      max_tokens: 9,
      messages: [{ role: "user", content: "Hi" }],
    });
    // Without the header, the body is the caller's.
    await ask("", { anthropic_beta: ["own"] });
    await ask("claude-code-20250219", { anthropic_beta: ["own"] });
    for (const { body } of peer.requests.slice(1)) {
      expect(JSON.parse(body)).toMatchObject({ anthropic_beta: ["own"] });
    }
  });

  it("signs a call of a door, and has the model in the path only", async () => {
    const { status, body } = await chat(`aws-bedrock/${MODEL}`);
    expect([status, JSON.parse(body).object]).toEqual([200, "chat.completion"]);
    const [request] = peer.requests;
    if (request === undefined) throw new Error("no request");
    expect(request.url).toBe("/model/us.anthropic.claude-opus-5-v1%3A0/invoke");
    const sent = JSON.parse(request.body) as Record<string, unknown>;
    expect(sent).toMatchObject({ anthropic_version: "bedrock-2023-05-31" });
    expect(sent).not.toHaveProperty("model");
    expect(sent).not.toHaveProperty("stream");
    expectSigned(request);
    expect(JSON.stringify(peer.requests)).not.toContain(AWS_SECRET);
  });

  it("passes messages with only the model replaced, and streams them", async () => {
    const body = `{"stream":true,"model":"aws-bedrock/${MODEL}","max_tokens":5,"messages":[{"role":"user","content":"é"}], "unknown" : 1.0}`;
    const response = await send(server, "POST", "/v1/messages", {
      body,
      headers: { "content-type": "application/json" },
    });
    expect(response.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
    expect(response.body).toBe(
      EVENTS.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""),
    );
    expect(peer.requests[0]?.body).toBe(
      `{"anthropic_version":"bedrock-2023-05-31","max_tokens":5,"messages":[{"role":"user","content":"é"}], "unknown" : 1.0}`,
    );
    const streamed = await chat(`aws-bedrock/${MODEL}`, { stream: true });
    expect(streamed.body).toMatch(/"content":"Hello"[\s\S]*\[DONE\]/);
  });

  it("signs calls of its own paths, and leaves binary streams and other credentials as they are", async () => {
    const path = "aws-bedrock/bedrock-runtime/eu-west-1/model/m/invoke-with-response-stream";
    const answered = await post(server, path, { body: "{}" });
    expect(answered.headers["content-type"]).toBe("application/vnd.amazon.eventstream");
    const [request] = peer.requests;
    if (request === undefined) throw new Error("no request");
    expectSigned(request);
    await post(server, path, { body: "{}", headers: { authorization: "Bearer ABSK-api-key" } });
    expect(peer.requests[1]?.headers.authorization).toBe("Bearer ABSK-api-key");
  });
});

describe("streams of Amazon Bedrock's own paths", () => {
  const path = (method: string) =>
    `aws-bedrock/bedrock-runtime/eu-west-1/model/us.anthropic.claude-opus-5/${method}`;

  it("are metered, and a limit counts what they cost", async () => {
    const gateway = "bedrock-streams";
    await setGateway(
      server,
      {
        allow_anonymous_keys: true,
        spend_limits: { rules: [{ id: "r", limitType: "cost", limit: 100, window: 86_400 }] },
      },
      gateway,
    );
    peer.answer = (_, response) => {
      response.writeHead(200, { "content-type": "application/vnd.amazon.eventstream" });
      response.end(message({ usage: { inputTokens: 300, outputTokens: 60_000 }, metrics: {} }));
    };
    await storeKey("aws-bedrock", "AWS_BEDROCK_API_KEY", gateway);
    const answered = await post(server, path("converse-stream"), {
      gateway,
      body: JSON.stringify({ messages: [], inferenceConfig: { maxTokens: 64_000 } }),
    });
    peer.answer = answer;
    expect(answered.status).toBe(200);
    const [row] = await readLogs(server, gateway);
    expect(row).toMatchObject({
      provider: "aws-bedrock",
      model: "us.anthropic.claude-opus-5",
      tokens_in: 300,
      tokens_out: 60_000,
      usage: "reported",
    });
    const after = await post(server, path("converse"), { gateway, body: "{}" });
    expect(100 - Number(after.headers["gw-aig-budget-remaining"])).toBeGreaterThanOrEqual(
      Number(row?.["cost"]),
    );
    expect(Number(row?.["cost"])).toBeGreaterThan(1);
  });
});

describe("Google Vertex AI", () => {
  it("exchanges the stored key file for an access token once", async () => {
    expect((await chat("vertex/gemini-3-pro")).status).toBe(200);
    expect((await chat("vertex/claude-opus-5")).status).toBe(200);
    expect(peer.requests.map(({ url }) => url)).toEqual([
      "/token",
      "/v1/projects/proj/locations/europe-west4/publishers/google/models/gemini-3-pro:generateContent",
      "/v1/projects/proj/locations/europe-west4/publishers/anthropic/models/claude-opus-5:rawPredict",
    ]);
    expect(peer.requests[1]?.headers.authorization).toBe("Bearer ya29.token");
    expect(JSON.parse(peer.requests[2]?.body ?? "")).toMatchObject({
      anthropic_version: "vertex-2023-10-16",
    });
    expect(JSON.stringify(peer.requests)).not.toContain("PRIVATE KEY");
  });

  it("sends an access token of the caller as it is", async () => {
    const path = "google-vertex-ai/v1/projects/p/locations/global/publishers/google/models/g:generateContent";
    await post(server, path, { body: "{}", headers: { authorization: "Bearer ya29.own" } });
    expect(peer.requests.map(({ headers }) => headers.authorization)).toEqual(["Bearer ya29.own"]);
  });

  it("answers 502 when the key is refused", async () => {
    const refusing = await startTestServer({
      file: {
        providers: { "google-vertex-ai": { baseUrl: peer.url, project: "p", tokenUrl: `${peer.url}/no` } },
      },
      environment: { GOOGLE_VERTEX_AI_API_KEY: SERVICE_ACCOUNT },
    });
    try {
      await refusing.api("PUT", "/accounts/default/ai-gateway/gateways/default", {
        allow_anonymous_keys: true,
      });
      await refusing.api("POST", "/accounts/default/ai-gateway/gateways/default/provider_configs", {
        provider_slug: "google-vertex-ai",
        alias: "default",
        default_config: true,
        secret_id: "GOOGLE_VERTEX_AI_API_KEY",
      });
      const answered = await send(refusing, "POST", "/v1/chat/completions", {
        body: JSON.stringify({ model: "vertex/gemini-3", messages: [{ role: "user", content: "x" }] }),
        headers: { "content-type": "application/json" },
      });
      expect([answered.status, JSON.parse(answered.body).error.code]).toEqual([502, "2005"]);
      expect(answered.body).not.toContain("PRIVATE");
    } finally {
      await refusing.stop();
    }
  });
});

describe("Azure OpenAI", () => {
  it("sends a stored key to the configured resource, whatever the path names", async () => {
    expect((await chat("azure/my-deployment")).status).toBe(200);
    await post(server, "azure-openai/other/my-deployment/chat/completions");
    expect(peer.requests.map(({ url, headers }) => [url, headers["api-key"], headers.host])).toEqual([
      ["/openai/v1/chat/completions", "azure-key", new URL(peer.url).host],
      ["/openai/deployments/my-deployment/chat/completions", "azure-key", new URL(peer.url).host],
    ]);
    expect(JSON.parse(peer.requests[0]?.body ?? "").model).toBe("my-deployment");
  });

  it("never sends a stored key to a resource that the caller names", async () => {
    const open = await startTestServer({ environment: { AZURE_OPENAI_API_KEY: "azure-key" } });
    try {
      await open.api("PUT", "/accounts/default/ai-gateway/gateways/default", { allow_anonymous_keys: true });
      await open.api("POST", "/accounts/default/ai-gateway/gateways/default/provider_configs", {
        provider_slug: "azure-openai",
        alias: "default",
        default_config: true,
        secret_id: "AZURE_OPENAI_API_KEY",
      });
      for (const headers of [{}, { "gw-aig-byok-alias": "default" }] as Record<string, string>[]) {
        const refused = await post(open, "azure-openai/attacker/d/chat/completions", { body: CHAT, headers });
        expect([refused.status, JSON.parse(refused.body).internalCode]).toEqual([400, 2002]);
        expect(refused.body).toContain("providers.azure-openai.baseUrl");
      }
    } finally {
      await open.stop();
    }
  });
});

describe("a cloud identity", () => {
  const KEYS = "/accounts/default/ai-gateway/gateways/machines/provider_configs";
  const BODY = { max_tokens: 5, messages: [{ role: "user", content: "Hi" }] };
  const ask = (model: string, gateway: string) =>
    send(server, "POST", `/v1/default/${gateway}/compat/messages`, {
      body: JSON.stringify({ model, ...BODY }),
      headers: { "content-type": "application/json" },
    });
  interface ShownKey {
    readonly provider_slug: string;
    readonly identity: object | null;
  }
  const listed = async (slug: string) =>
    ((await server.api("GET", KEYS)).body.result as ShownKey[]).find((one) => one.provider_slug === slug);

  beforeAll(async () => {
    await setGateway(server, { allow_anonymous_keys: true }, "machines");
    await storeKey("aws-bedrock", "AWS_BEDROCK_API_KEY_MACHINE", "machines");
    await storeKey("azure-openai", "AZURE_OPENAI_API_KEY_MACHINE", "machines");
    await storeKey("google-vertex-ai", "GOOGLE_VERTEX_AI_API_KEY_MACHINE", "machines");
  });

  it("signs the requests of Bedrock with the role of the machine, and is shown in the key list without a secret", async () => {
    expect((await ask("aws-bedrock/anthropic.claude-x", "machines")).status).toBe(200);
    const sent = peer.requests.at(-1);
    expect(sent?.headers.authorization).toContain("Credential=ASIAMACHINE/");
    expect(sent?.headers["x-amz-security-token"]).toBe("session");
    const key = await listed("aws-bedrock");
    const until = { source: "instance", expires_at: expect.any(String) as string, error: null };
    expect(key?.identity).toEqual(until);
    for (const secret of [AWS_SECRET, "session"]) expect(JSON.stringify(key)).not.toContain(`"${secret}`);
  });

  it("is the bearer of Azure's requests, in place of a key, also of the handshake of a session", async () => {
    const path = "/v1/default/machines/azure-openai/res/dep/chat/completions?api-version=1";
    await send(server, "POST", path, { body: CHAT, headers: { "content-type": "application/json" } });
    const sent = peer.requests.at(-1);
    expect([sent?.headers.authorization, sent?.headers["api-key"]]).toEqual(["Bearer aad-token", undefined]);
    peer.requests.length = 0;
    const session = "/v1/default/machines/azure-openai/res/dep/realtime?model=dep";
    // The provider has no sessions, and answers the handshake as it answers a request.
    await once(new WebSocket(server.url.replace("http", "ws") + session), "error");
    expect(peer.requests.map(({ headers }) => headers.authorization)).toEqual(["Bearer aad-token"]);
  });

  it("that gives no credential is an error with a code, and nothing is sent to the provider", async () => {
    const answered = await ask("google-vertex-ai/google/gemini-x", "machines");
    expect(answered.status).toBe(502);
    expect(answered.body).toContain("The identity metadata of google-vertex-ai gave no credential");
    expect(peer.requests.map(({ url }) => url).filter((url) => !url.startsWith("/gce/"))).toEqual([]);
    expect((await listed("google-vertex-ai"))?.identity).toEqual({
      source: "metadata",
      expires_at: null,
      error: expect.stringContaining("HTTP 404") as string,
    });
  });

  it("is not lent to a tenant who stores its description as a key", async () => {
    await setGateway(server, { allow_anonymous_keys: true }, "tenant");
    const path = "/accounts/default/ai-gateway/gateways/tenant/provider_configs";
    for (const slug of ["aws-bedrock", "google-vertex-ai", "azure-openai"]) {
      const secret = '{"identity":"instance"}';
      const key = { provider_slug: slug, alias: "default", default_config: true, secret };
      const { body } = await server.api("POST", path, key);
      expect((body.result as ShownKey).identity).toBeNull();
    }
    for (const model of ["aws-bedrock/anthropic.claude-x", "azure-openai/gpt-x"]) await ask(model, "tenant");
    expect(peer.requests.map(({ headers }) => headers.authorization ?? "").join()).not.toMatch(
      /ASIAMACHINE|aad-token/,
    );
  });

  it("belongs to the accounts that were given its variable", async () => {
    await server.api("POST", "/accounts", { id: "stranger" });
    await server.api("POST", "/accounts/stranger/ai-gateway/gateways", { id: "g" });
    for (const secret_id of ["AWS_BEDROCK_API_KEY_MACHINE", "env:AWS_BEDROCK_API_KEY_MACHINE"]) {
      const key = { provider_slug: "aws-bedrock", alias: "x", default_config: false, secret_id };
      const { status } = await server.api(
        "POST",
        "/accounts/stranger/ai-gateway/gateways/g/provider_configs",
        key,
      );
      expect(status).toBe(400);
    }
  });
});
