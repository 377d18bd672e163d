/** Contract sections 1.1, 4.1 and 9.1: where calls are sent, and that requests and responses arrive unchanged. */
import { request as httpRequest, type IncomingMessage } from "node:http";
import { once } from "node:events";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ProviderPeer, sendJson } from "../peers/provider.ts";
import { callPath, post, send, startWithProvider } from "../support/gateway.ts";
import type { TestServer } from "../support/test-server.ts";

let provider: ProviderPeer;
let server: TestServer;
let stop: () => Promise<void>;
beforeAll(async () => {
  ({ provider, server, stop } = await startWithProvider((at) => ({
    file: {
      providers: {
        openai: at,
        groq: at,
        deepseek: at,
        anthropic: at,
        "google-ai-studio": at,
        "azure-openai": at,
        cohere: at,
        ollama: at,
        mine: { baseUrl: `${at.baseUrl}/base/v1` },
      },
      gateway: { allowPrivateCustomProviders: true },
    },
  })));
});
afterAll(() => stop());
beforeEach(() => {
  provider.requests.length = 0;
});

describe("paths, methods, queries, headers and bodies", () => {
  it.each([
    ["openai/chat/completions", "/v1/chat/completions"],
    ["openai/v1/chat/completions", "/v1/chat/completions"],
    ["groq/v1/chat/completions", "/openai/v1/chat/completions"],
    ["deepseek/chat/completions", "/chat/completions"],
    ["anthropic/v1/messages", "/v1/messages"],
    ["google-ai-studio/chat/completions", "/v1beta/openai/chat/completions"],
    [
      "azure-openai/res/dep/chat/completions?api-version=1",
      "/openai/deployments/dep/chat/completions?api-version=1",
    ],
    ["ollama/api/chat", "/api/chat"],
    ["mine/chat/completions", "/base/v1/chat/completions"],
    ["mine/v1/chat/completions", "/base/v1/chat/completions"],
    ["openai/chat/completions?a=1&b=%20x", "/v1/chat/completions?a=1&b=%20x"],
    ["openai/files/a%2Fb", "/v1/files/a%2Fb"],
  ])("%s is forwarded to %s", async (path, url) => {
    expect((await post(server, path)).status).toBe(200);
    expect(provider.requests[0]?.url).toBe(url);
  });

  it.each(["GET", "PUT", "PATCH", "DELETE", "OPTIONS"])("the method %s is forwarded", async (method) => {
    const answer = await send(server, method, callPath("openai/files/1"));
    expect(answer.status).toBe(200);
    expect(provider.requests[0]).toMatchObject({ method, url: "/v1/files/1", body: "" });
  });

  it("HEAD is forwarded and answered with the length and no body", async () => {
    const answer = await send(server, "HEAD", callPath("openai/models"));
    expect(answer).toMatchObject({ status: 200, body: "" });
    expect(answer.headers["content-length"]).toBe("11");
  });

  it("a body of unknown format is forwarded byte for byte", async () => {
    const body = Buffer.from(Array.from({ length: 512 }, (_, i) => i % 256));
    provider.answer = (_, response, raw) =>
      sendJson(response, 200, { length: raw.headers["content-length"] });
    const answer = await post(server, "openai/audio/transcriptions", {
      body,
      headers: { "content-type": "multipart/form-data; boundary=x" },
    });
    provider.answer = (_, response) => sendJson(response, 200, { ok: true });
    expect(JSON.parse(answer.body)).toEqual({ length: "512" });
    expect(provider.requests[0]?.headers["content-type"]).toBe("multipart/form-data; boundary=x");
  });

  it("status, headers and body of the provider are returned, without hop-by-hop headers", async () => {
    provider.answer = (_, response) => {
      response.writeHead(418, [
        ["content-type", "text/plain"],
        ["x-ratelimit-remaining", "7"],
        ["x-twice", "a=1"],
        ["x-twice", "b=2"],
        ["set-cookie", "of=the provider"],
        ["keep-alive", "timeout=99"],
        ["connection", "keep-alive, x-hop"],
        ["x-hop", "1"],
        ["x-request-id", "req_provider"],
      ] as unknown as string[]);
      response.end("short and stout");
    };
    const answer = await post(server, "openai/chat/completions");
    provider.answer = (_, response) => sendJson(response, 200, { ok: true });
    expect(answer).toMatchObject({ status: 418, body: "short and stout" });
    expect(answer.headers).toMatchObject({
      "content-type": "text/plain",
      "x-ratelimit-remaining": "7",
      "x-twice": "a=1, b=2",
      "x-request-id": "req_provider",
      "gw-aig-error-origin": "provider",
    });
    expect(answer.headers["set-cookie"]).toBeUndefined();
    expect(answer.headers["x-hop"]).toBeUndefined();
    expect(answer.headers["keep-alive"]).not.toBe("timeout=99");
  });

  it("an uncompressed response is requested, and hop-by-hop request headers are dropped", async () => {
    await post(server, "openai/chat/completions", {
      headers: {
        connection: "x-mine",
        "x-mine": "1",
        te: "trailers",
        "accept-encoding": "gzip, br",
        "x-yours": "2",
      },
    });
    const headers = provider.requests[0]?.headers ?? {};
    expect(headers).toMatchObject({
      "accept-encoding": "identity",
      "x-yours": "2",
      host: `127.0.0.1:${provider.port}`,
    });
    expect(headers["x-mine"]).toBeUndefined();
    expect(headers["te"]).toBeUndefined();
  });

  it("the caller's trace continues with the gateway as the parent", async () => {
    const trace = "0af7651916cd43dd8448eb211c80319c";
    await post(server, "openai/chat/completions", {
      headers: { traceparent: `00-${trace}-b7ad6b7169203331-01`, tracestate: "a=b" },
    });
    const sent = String(provider.requests[0]?.headers["traceparent"]);
    expect(sent).toMatch(new RegExp(`^00-${trace}-[0-9a-f]{16}-01$`));
    expect(sent).not.toContain("b7ad6b7169203331");
    expect(provider.requests[0]?.headers["tracestate"]).toBe("a=b");
  });

  it("the response carries the id of its log row", async () => {
    const answer = await post(server, "openai/chat/completions");
    expect(answer.headers["gw-aig-log-id"]).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/);
    const silent = await post(server, "openai/chat/completions", {
      headers: { "gw-aig-collect-log": "false" },
    });
    expect(silent.headers["gw-aig-log-id"]).toBeUndefined();
  });

  it("a request body larger than the stored part is streamed", async () => {
    const size = 20 * 1024 * 1024;
    let received = 0;
    provider.answer = (_, response) => sendJson(response, 200, { received });
    const request = httpRequest(`${server.url}${callPath("openai/files")}`, {
      method: "POST",
      headers: { "content-type": "application/octet-stream" },
    });
    const piece = Buffer.alloc(64 * 1024, 1);
    for (let sent = 0; sent < size; sent += piece.length) {
      if (!request.write(piece)) await once(request, "drain");
    }
    request.end();
    const [response] = (await once(request, "response")) as [IncomingMessage];
    response.resume();
    expect(response.statusCode).toBe(200);
    received = provider.requests[0]?.body.length ?? 0;
    provider.answer = (_, answer) => sendJson(answer, 200, { ok: true });
    expect(received).toBe(size);
    expect(provider.requests[0]?.headers["transfer-encoding"]).toBe("chunked");
  });
});
