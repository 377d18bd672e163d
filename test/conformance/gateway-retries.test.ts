/** Retries, timeouts and fallback: per request, per gateway, and over the steps of the universal endpoint. */
import type { ServerResponse } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ProviderPeer, sendEvents, sendJson, startProvider } from "../peers/provider.ts";
import { CHAT, post, readLogs, send, setGateway } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let first: ProviderPeer;
let second: ProviderPeer;
let server: TestServer;
beforeAll(async () => {
  first = await startProvider(() => undefined);
  second = await startProvider(() => undefined);
  server = await startTestServer({
    file: { providers: { openai: { baseUrl: first.url }, groq: { baseUrl: second.url } } },
  });
});
afterAll(async () => {
  await server.stop();
  await first.close();
  await second.close();
});
beforeEach(async () => {
  first.requests.length = 0;
  second.requests.length = 0;
  first.answer = (_, response) => sendJson(response, 200, { from: "first" });
  second.answer = (_, response) => sendJson(response, 200, { from: "second" });
  await setGateway(server, { retry_max_attempts: null, retry_delay: null, retry_backoff: null });
  await server.api("DELETE", "/accounts/default/ai-gateway/gateways/default/circuits");
});

const quick = { "gw-aig-retry-delay": "1" };

/** Fails the first `count` requests, then answers. */
function failing(peer: ProviderPeer, count: number, fail: (response: ServerResponse) => void): void {
  let failed = 0;
  peer.answer = (_, response) => {
    failed += 1;
    if (failed <= count) fail(response);
    else sendJson(response, 200, { attempt: failed });
  };
}

describe("attempts", () => {
  it("a call makes one attempt by default", async () => {
    failing(first, 1, (response) => sendJson(response, 503, { error: "busy" }));
    expect((await post(server, "openai/chat/completions")).status).toBe(503);
    expect(first.requests).toHaveLength(1);
  });

  it.each([
    ["a busy provider", (response: ServerResponse) => sendJson(response, 503, {})],
    ["a rate limit", (response: ServerResponse) => sendJson(response, 429, {})],
    ["a closed connection", (response: ServerResponse) => void response.destroy()],
  ])("a call is retried after %s, with the same body", async (_, fail) => {
    failing(first, 2, fail);
    const answer = await post(server, "openai/chat/completions", {
      headers: { ...quick, "gw-aig-max-attempts": "3" },
    });
    expect(JSON.parse(answer.body)).toEqual({ attempt: 3 });
    expect(first.requests.map(({ body }) => body)).toEqual([CHAT, CHAT, CHAT]);
  });

  it("the provider's last response is returned if all attempts fail", async () => {
    failing(first, 9, (response) => sendJson(response, 500, { error: "still broken" }));
    const answer = await post(server, "openai/chat/completions", {
      headers: { ...quick, "gw-aig-max-attempts": "2" },
    });
    expect(answer).toMatchObject({ status: 500, body: '{"error":"still broken"}' });
    expect(answer.headers["gw-aig-error-origin"]).toBe("provider");
    expect(first.requests).toHaveLength(2);
  });

  it("errors that another attempt cannot change are not retried", async () => {
    failing(first, 1, (response) => sendJson(response, 400, { error: "bad" }));
    expect(
      (await post(server, "openai/chat/completions", { headers: { "gw-aig-max-attempts": "3" } })).status,
    ).toBe(400);
    expect(first.requests).toHaveLength(1);
  });

  it("the gateway's settings apply, and the request's headers override them", async () => {
    await setGateway(server, { retry_max_attempts: 2, retry_delay: 1, retry_backoff: "exponential" });
    failing(first, 9, (response) => sendJson(response, 500, {}));
    await post(server, "openai/chat/completions");
    expect(first.requests).toHaveLength(2);
    await post(server, "openai/chat/completions", { headers: { "gw-aig-max-attempts": "4" } });
    expect(first.requests).toHaveLength(6);
  });

  it("a call is not retried after the first byte was sent to the client", async () => {
    first.answer = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("data: 1\n\n", () => response.destroy());
    };
    await expect(
      post(server, "openai/chat/completions", { headers: { "gw-aig-max-attempts": "5" } }),
    ).rejects.toThrow();
    expect(first.requests).toHaveLength(1);
  });

  it("the timeout of an attempt ends with its first byte", async () => {
    first.answer = () => undefined;
    const answer = await post(server, "openai/chat/completions", {
      headers: { "gw-aig-request-timeout": "30" },
    });
    expect(answer.status).toBe(504);
    expect(JSON.parse(answer.body)).toMatchObject({ internalCode: 2004 });
    const { promise, resolve } = Promise.withResolvers<void>();
    first.answer = async (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("data: 1\n\n");
      await promise;
      response.end("data: 2\n\n");
    };
    setTimeout(resolve, 1_600);
    const slow = await post(server, "openai/chat/completions", {
      headers: { "gw-aig-request-timeout": "1500" },
    });
    expect(slow.body).toBe("data: 1\n\ndata: 2\n\n");
  });

  it("retries stop when the client disconnects", async () => {
    const controller = new AbortController();
    first.answer = (_, response) => {
      response.once("finish", () => setTimeout(() => controller.abort(), 50));
      sendJson(response, 500, {});
    };
    const call = fetch(`${server.url}/v1/default/default/openai/chat/completions`, {
      method: "POST",
      body: CHAT,
      headers: {
        "content-type": "application/json",
        "gw-aig-max-attempts": "5",
        "gw-aig-retry-delay": "5000",
      },
      signal: controller.signal,
    });
    await expect(call).rejects.toThrow();
    const marker = await post(server, "groq/chat/completions");
    expect(marker.status).toBe(200);
    await expect
      .poll(async () => (await readLogs(server)).some((row) => row["status_code"] === 499))
      .toBe(true);
    // A pause of the machine may outlast the first delay, but not all of them: the row is written when the call is over.
    expect(first.requests.length).toBeLessThan(5);
  });

  it.each([
    ["gw-aig-max-attempts", "0"],
    ["gw-aig-max-attempts", "6"],
    ["gw-aig-retry-delay", "-1"],
    ["gw-aig-backoff", "random"],
    ["gw-aig-request-timeout", "soon"],
    ["gw-aig-max-retry-wait", "-1"],
    ["gw-aig-first-token-timeout", "0"],
    ["gw-aig-stall-timeout", "0"],
    ["gw-aig-hold-response", "maybe"],
    ["gw-aig-fallback-on", "399"],
    ["gw-aig-hedge-after", "0"],
    ["gw-aig-strategy", "luck"],
    ["gw-aig-weight", "0"],
  ])("refused: %s: %s", async (name, value) => {
    const answer = await post(server, "openai/chat/completions", { headers: { [name]: value } });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toMatchObject({
      internalCode: 2002,
      message: expect.stringContaining(name) as string,
    });
    expect(first.requests).toHaveLength(0);
  });
});

describe("the universal endpoint", () => {
  const query = { model: "gpt-4o-mini", messages: [{ role: "user", content: "Hello" }] };
  const steps = (change: object = {}) => [
    {
      provider: "openai",
      endpoint: "chat/completions",
      headers: { authorization: "Bearer one" },
      query,
      ...change,
    },
    {
      provider: "groq",
      endpoint: "v1/chat/completions?x=1",
      headers: { Authorization: "Bearer two" },
      query,
    },
  ];
  const universal = (body: unknown, headers: Record<string, string> = {}) =>
    send(server, "POST", "/v1/default/default", {
      body: typeof body === "string" ? body : JSON.stringify(body),
      headers: { "content-type": "application/json", ...headers },
    });

  it("the first step that succeeds answers, and the response names it", async () => {
    const answer = await universal(steps());
    expect(answer).toMatchObject({ status: 200, body: '{"from":"first"}' });
    expect(answer.headers["gw-aig-step"]).toBe("0");
    expect(second.requests).toHaveLength(0);
    expect(first.requests[0]).toMatchObject({ url: "/v1/chat/completions", body: JSON.stringify(query) });
    expect(first.requests[0]?.headers.authorization).toBe("Bearer one");
  });

  it.each([
    ["fails", (response: ServerResponse) => sendJson(response, 500, {})],
    ["returns an error status", (response: ServerResponse) => sendJson(response, 401, {})],
    ["closes the connection", (response: ServerResponse) => void response.destroy()],
  ])("the next step runs when a step %s", async (_, fail) => {
    first.answer = (__, response) => fail(response);
    const answer = await universal(steps());
    expect(answer).toMatchObject({ status: 200, body: '{"from":"second"}' });
    expect(answer.headers["gw-aig-step"]).toBe("1");
    expect(second.requests[0]).toMatchObject({ url: "/openai/v1/chat/completions?x=1" });
    expect(second.requests[0]?.headers.authorization).toBe("Bearer two");
    const [row] = await readLogs(server);
    expect(row).toMatchObject({ provider: "groq", step: 1, success: true });
    // The row says where the time went, also of the step that failed.
    const attempts = JSON.parse(String(row?.["attempts"])) as { start: number; duration: number }[];
    expect(attempts).toMatchObject([
      { step: 0, outcome: "failed", failure: expect.stringMatching(/^(status|broken|unreachable)$/) },
      { provider: "groq", step: 1, status: 200, outcome: "answered", failure: null },
    ]);
    expect(attempts[1]?.start).toBeGreaterThanOrEqual(attempts[0]?.start ?? Infinity);
  });

  it("each step has its own attempts and timeout; a silent step is not tried again while another exists", async () => {
    const config = { maxAttempts: 2, retryDelay: 1 };
    first.answer = (_, response) => sendJson(response, 503, {});
    expect((await universal(steps({ config }))).headers["gw-aig-step"]).toBe("1");
    expect(first.requests).toHaveLength(2);
    first.answer = () => undefined;
    // Long enough for the request to reach the provider on a busy machine.
    const impatient = { ...config, requestTimeout: 1000 };
    expect((await universal(steps({ config: impatient }))).headers["gw-aig-step"]).toBe("1");
    expect(first.requests).toHaveLength(3);
  });

  it("headers of a step override its config, which overrides the request's headers", async () => {
    first.answer = (_, response) => sendJson(response, 500, {});
    await universal(steps({ config: { maxAttempts: 3 } }), { ...quick, "gw-aig-max-attempts": "5" });
    expect(first.requests).toHaveLength(3);
    first.requests.length = 0;
    await universal(steps({ config: { maxAttempts: 3 }, headers: { "cf-aig-max-attempts": 2 } }), quick);
    expect(first.requests).toHaveLength(2);
  });

  it("the last step's response is returned if all steps fail", async () => {
    first.answer = (_, response) => sendJson(response, 500, {});
    second.answer = (_, response) => sendJson(response, 429, { error: "limit" });
    const answer = await universal(steps());
    expect(answer).toMatchObject({ status: 429, body: '{"error":"limit"}' });
    expect(answer.headers).toMatchObject({ "gw-aig-step": "1", "gw-aig-error-origin": "provider" });
  });

  it("a single step without an array is accepted, and streams", async () => {
    first.answer = (_, response) => sendEvents(response, ["data: a\n\n", "data: b\n\n"]);
    const answer = await universal(steps()[0]);
    expect(answer.body).toBe("data: a\n\ndata: b\n\n");
    expect(answer.headers["gw-aig-step"]).toBe("0");
  });

  it.each([
    ["no JSON", "{", "not valid JSON"],
    ["an empty array", [], "1 to 20 steps"],
    ["no provider", [{ endpoint: "x", query }], "step 0: provider"],
    ["no endpoint", [{ provider: "openai", query }], "step 0: endpoint"],
    [
      "an endpoint outside the provider's base URL",
      [{ provider: "openai", endpoint: "../../secret", query }],
      "step 0: The path",
    ],
    ["a broken endpoint", [{ provider: "openai", endpoint: "x\r\nhost: evil", query }], "step 0: endpoint"],
    [
      "a header value with a line break",
      [{ provider: "openai", endpoint: "x", headers: { a: "b\r\nevil: 1" }, query }],
      "step 0: headers.a",
    ],
    [
      "a header name with a line break",
      [{ provider: "openai", endpoint: "x", headers: { "a: b\r\nevil": "1" }, query }],
      "step 0: headers.",
    ],
    [
      "a bad config",
      [{ provider: "openai", endpoint: "x", config: { maxAttempts: 99 }, query }],
      "config.maxAttempts",
    ],
    [
      "a call without model",
      [{ provider: "openai", endpoint: "chat/completions", query: {} }],
      "step 0: model",
    ],
  ])("refused: %s", async (_, body, message) => {
    const answer = await universal(body);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toMatchObject({
      internalCode: 2002,
      message: expect.stringContaining(message) as string,
    });
    expect(first.requests).toHaveLength(0);
  });

  it("an unknown provider is refused with 2008", async () => {
    const answer = await universal([{ provider: "nowhere", endpoint: "x", query }]);
    expect(JSON.parse(answer.body)).toMatchObject({ internalCode: 2008 });
  });

  it("other methods than POST are refused", async () => {
    expect((await send(server, "GET", "/v1/default/default")).status).toBe(405);
  });
});
