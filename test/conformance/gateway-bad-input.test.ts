/** Invalid calls get an error of the gateway; content that the gateway does not need to understand is forwarded. */
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ProviderPeer, sendJson } from "../peers/provider.ts";
import { callPath, CHAT, post, rawExchange, readLogs, send, startWithProvider } from "../support/gateway.ts";
import type { TestServer } from "../support/test-server.ts";

const MAX_BODY = 1024 * 1024;

let provider: ProviderPeer;
let server: TestServer;
let stop: () => Promise<void>;
beforeAll(async () => {
  ({ provider, server, stop } = await startWithProvider((at) => ({
    file: {
      providers: { openai: at, anthropic: at, "azure-openai": at },
      gateway: { maxBodyBytes: MAX_BODY, replayBodyBytes: 512 * 1024 },
    },
  })));
});
afterAll(() => stop());
beforeEach(() => {
  provider.requests.length = 0;
});

describe("requests refused before anything is sent upstream", () => {
  it.each([
    ["malformed JSON", { body: "{" }, "not valid JSON"],
    ["an empty body", { body: "" }, "empty"],
    ["JSON that is not an object", { body: "[1]" }, "object"],
    ["a missing model", { body: '{"messages":[]}' }, "model"],
    ["a model that is not a string", { body: '{"model":7}' }, "model"],
    ["text in another encoding", { body: Buffer.from(CHAT, "utf16le") }, "not valid JSON"],
    ["a wrong content type", { headers: { "content-type": "text/plain" } }, "Content-Type"],
    ["metadata that is not JSON", { headers: { "gw-aig-metadata": "user=1" } }, "gw-aig-metadata"],
    ["metadata that is not flat", { headers: { "gw-aig-metadata": '{"a":{"b":1}}' } }, "gw-aig-metadata"],
    [
      "a cost that is not a number",
      { headers: { "gw-aig-custom-cost": '{"total_cost":"1"}' } },
      "gw-aig-custom-cost",
    ],
    ["an invalid boolean header", { headers: { "gw-aig-collect-log": "perhaps" } }, "gw-aig-collect-log"],
  ])("%s: 400 and code 2002", async (_, options, message) => {
    const answer = await post(server, "openai/chat/completions", options);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toEqual({
      success: false,
      result: [],
      messages: [],
      error: [{ code: 2002, message: expect.stringContaining(message) as string }],
      name: "AiGatewayError",
      httpCode: 400,
      internalCode: 2002,
      message: expect.stringContaining(message) as string,
    });
    expect(answer.headers["gw-aig-error-origin"]).toBe("gateway");
    expect(provider.requests).toHaveLength(0);
  });

  it.each([
    ["an unknown gateway", "/v1/default/nowhere/openai/x", 2001],
    ["an unknown account", "/v1/nobody/default/openai/x", 2001],
    ["no gateway", "/v1/default", 2001],
    ["an empty path", "/v1", 2001],
    ["an unknown provider", "/v1/default/default/nowhere/x", 2008],
    ["an unknown custom provider", "/v1/default/default/custom-nowhere/x", 2008],
    ["a name of Object.prototype", "/v1/default/default/constructor/x", 2008],
    ["a path outside the provider's base URL", "/v1/default/default/openai/../../x", 2002],
    ["an encoded path outside", "/v1/default/default/openai/%2e%2e/x", 2002],
    ["a half-encoded path outside", "/v1/default/default/openai/.%2e%2fx", 2002],
    ["a path outside with backslashes", "/v1/default/default/openai/..%5cx", 2002],
    ["a path with invalid encoding", "/v1/default/default/openai/%ff%", 2002],
  ])("%s: 400 with its code", async (_, path, code) => {
    const answer = await send(server, "GET", path);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toMatchObject({ internalCode: code });
    expect(provider.requests).toHaveLength(0);
  });

  it("a refused request leaves no log row", async () => {
    const before = await readLogs(server);
    await post(server, "openai/chat/completions", { body: "{" });
    expect(await readLogs(server)).toHaveLength(before.length);
  });
});

describe("large bodies", () => {
  it("a declared length over the limit is refused without reading the body: 413 and code 2010", async () => {
    const head = `POST ${callPath("openai/files")} HTTP/1.1\r\nhost: x\r\ncontent-length: ${MAX_BODY + 1}\r\n\r\n`;
    const text = await rawExchange(server, head, /\}$/);
    expect(text).toMatch(/^HTTP\/1\.1 413 /);
    expect(text).toContain('"internalCode":2010');
    expect(provider.requests).toHaveLength(0);
  });

  it("a body without a declared length is refused when it exceeds the limit", async () => {
    const request = httpRequest(`${server.url}${callPath("openai/files")}`, { method: "POST", agent: false });
    request.on("error", () => undefined);
    const answered = once(request, "response") as Promise<[IncomingMessage]>;
    for (let sent = 0; sent <= MAX_BODY + 256 * 1024 && !request.destroyed; sent += 64 * 1024) {
      request.write(Buffer.alloc(64 * 1024));
    }
    const [response] = await answered;
    expect(response.statusCode).toBe(413);
    request.destroy();
    expect(provider.requests).toHaveLength(0);
  });

  it("a body larger than the stored part is forwarded, wherever its model member is", async () => {
    const body = JSON.stringify({
      messages: [{ content: `"model":"wrong" ${"x".repeat(700_000)}` }],
      model: "the-model",
    });
    const answer = await post(server, "openai/chat/completions", { body });
    expect(answer.status).toBe(200);
    expect(provider.requests[0]?.body).toBe(body);
  });

  it("the model is found in a body that is too large to parse", async () => {
    const body = JSON.stringify({
      messages: [{ model: "wrong", content: "x".repeat(400_000) }],
      model: "the-model",
    });
    await post(server, "openai/chat/completions", { body });
    expect((await readLogs(server))[0]).toMatchObject({ model: "the-model" });
  });
});

describe("content that the gateway does not interpret", () => {
  it.each([
    ["any body to an unknown path", "openai/threads/runs", "not json at all", "text/plain"],
    ["a multipart upload", "openai/audio/transcriptions", "--x--", "multipart/form-data; boundary=x"],
    [
      "a call without model where the path names it",
      "azure-openai/res/dep/chat/completions",
      "{}",
      "application/json",
    ],
    ["a response without model", "openai/responses", '{"prompt":{"id":"p"}}', "application/json"],
    ["JSON with a charset", "openai/chat/completions", CHAT, "application/json; charset=UTF-8"],
  ])("forwarded: %s", async (_, path, body, contentType) => {
    expect((await post(server, path, { body, headers: { "content-type": contentType } })).status).toBe(200);
    expect(provider.requests[0]?.body).toBe(body);
  });

  it("a compressed body is forwarded unchanged", async () => {
    const body = gzipSync(CHAT);
    const answer = await post(server, "openai/chat/completions", {
      body,
      headers: { "content-encoding": "gzip" },
    });
    expect(answer.status).toBe(200);
    expect(provider.requests[0]?.headers).toMatchObject({
      "content-encoding": "gzip",
      "content-length": String(body.length),
    });
  });

  it("a chunked body is accepted", async () => {
    const text = await rawExchange(
      server,
      `POST ${callPath("openai/chat/completions")} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n${CHAT.length.toString(16)}\r\n${CHAT}\r\n0\r\n\r\n`,
      /"ok":true/,
    );
    expect(text).toMatch(/^HTTP\/1\.1 200 /);
    expect(provider.requests[0]).toMatchObject({ body: CHAT });
    expect(provider.requests[0]?.headers["content-length"]).toBe(String(CHAT.length));
  });

  it("metadata with values of every kind is stored", async () => {
    const metadata = { a: 1, b: "ü", c: true, d: null, e: 5, f: 6 };
    const header = Buffer.from(JSON.stringify(metadata)).toString("latin1");
    await post(server, "openai/chat/completions", { headers: { "gw-aig-metadata": header } });
    const shown = (await readLogs(server))[0]?.["metadata"];
    expect(typeof shown === "string" ? JSON.parse(shown) : shown).toEqual(metadata);
  });
});

describe("a provider that misbehaves", () => {
  it.each([
    ["sends no HTTP", "hello\r\n\r\n"],
    ["sends two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx"],
    ["sends endless headers", `HTTP/1.1 200 OK\r\nx: ${"y".repeat(70_000)}`],
    [
      "sends a header with a control character",
      "HTTP/1.1 200 OK\r\nx: a\u0001b\r\ncontent-length: 0\r\n\r\n",
    ],
    ["sends a header name with a space", "HTTP/1.1 200 OK\r\nx y: a\r\ncontent-length: 0\r\n\r\n"],
  ])("a provider that %s: 502 and code 2005", async (_, bytes) => {
    provider.answer = (__, response) => void response.socket?.end(bytes, "latin1");
    const answer = await post(server, "openai/chat/completions");
    provider.answer = (__, response) => sendJson(response, 200, { ok: true });
    expect(answer.status).toBe(502);
    expect(JSON.parse(answer.body)).toMatchObject({ internalCode: 2005 });
    expect(answer.headers["gw-aig-error-origin"]).toBe("gateway");
    expect((await readLogs(server))[0]).toMatchObject({ status_code: 502, success: false });
  });

  it("a provider cannot set the gateway's own response headers", async () => {
    provider.answer = (_, response) =>
      sendJson(
        response,
        200,
        {},
        { "gw-aig-log-id": "forged", "cf-aig-cache-status": "HIT", "gw-aig-step": "9" },
      );
    const answer = await post(server, "openai/chat/completions");
    provider.answer = (_, response) => sendJson(response, 200, { ok: true });
    expect(answer.headers["gw-aig-log-id"]).not.toBe("forged");
    expect(answer.headers["cf-aig-cache-status"]).toBeUndefined();
    expect(answer.headers["gw-aig-step"]).toBeUndefined();
  });
});
