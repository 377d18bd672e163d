/** A limited caller tries to spend more than its limit: every way that is known, and some that providers might allow. */
import { request as httpRequest } from "node:http";
import { once } from "node:events";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ProviderPeer, sendEvents, sendJson, startProvider } from "../peers/provider.ts";
import { post, readLogs, send, setGateway } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

/** One dollar for each token. */
const DOLLAR = { in: 1_000_000, out: 1_000_000 };
const USAGE = { prompt_tokens: 4, completion_tokens: 6, total_tokens: 10 };
const JSON_TYPE = { "content-type": "application/json" };

let provider: ProviderPeer;
let other: ProviderPeer;
let server: TestServer;
let now = Date.UTC(2030, 0, 1, 12, 0, 1);
/** Calls that the provider answered with usage, each of 10 dollars. */
let billed = 0;

beforeAll(async () => {
  provider = await startProvider(() => undefined);
  other = await startProvider((_, response) => sendJson(response, 500, { error: "down" }));
  server = await startTestServer({
    file: {
      providers: {
        openai: { baseUrl: provider.url },
        groq: { baseUrl: other.url },
        "google-ai-studio": { baseUrl: provider.url },
        anthropic: { baseUrl: provider.url },
      },
      gateway: {
        prices: {
          openai: { dear: DOLLAR, cheap: { in: 1, out: 1 } },
          groq: { dear: DOLLAR },
          anthropic: { dear: DOLLAR },
          "google-ai-studio": { dear: DOLLAR },
        },
        replayBodyBytes: 65_536,
      },
    },
    clock: { now: () => now },
  });
});
afterAll(async () => {
  await server.stop();
  await provider.close();
  await other.close();
});
beforeEach(async () => {
  now += 7_200_000;
  billed = 0;
  provider.answer = (_, response) => {
    billed += 1;
    sendJson(response, 200, { model: "dear", choices: [], usage: USAGE });
  };
  await setGateway(server, {
    trust_custom_cost: false,
    retry_max_attempts: null,
    rate_limiting_limit: null,
    rate_limiting_interval: null,
    spend_limits: { rules: [{ id: "r", limitType: "cost", limit: 25, window: 3600 }] },
  });
});

const setLimit = (limit: number) =>
  setGateway(server, { spend_limits: { rules: [{ id: "own", limitType: "cost", limit, window: 3600 }] } });
const body = (fields: object = {}) => JSON.stringify({ model: "dear", max_tokens: 6, m: 1, ...fields });
const call = (
  text: string | Buffer = body(),
  headers: Record<string, string> = {},
  path = "openai/chat/completions",
) => post(server, path, { body: text, headers: { authorization: "Bearer k", ...headers } });

/** Two calls are 20 of 25 dollars, so a third one must not reach the provider, nor any number of later ones. */
async function exhausts(send: () => Promise<{ status: number }>): Promise<number[]> {
  const statuses: number[] = [];
  for (let i = 0; i < 6; i++) statuses.push((await send()).status);
  return statuses;
}

describe("a limit on cost holds", () => {
  it("for honest calls, with rule, amounts and time in the refusal", async () => {
    expect(await exhausts(() => call())).toEqual([200, 429, 429, 429, 429, 429]);
    // Each call reserves 15 tokens of input and 6 of output, so the second one has to wait for more room.
    const refused = await call();
    expect(JSON.parse(refused.body)).toMatchObject({
      internalCode: 2041,
      rule: "r",
      spent: 10,
      limit: 25,
      reset_at: new Date(Math.ceil(now / 3_600_000) * 3_600_000).toISOString(),
    });
    expect(refused.headers["gw-aig-budget-remaining"]).toBe("15");
    expect(Number(refused.headers["retry-after"])).toBe(Math.ceil((3_600_000 - (now % 3_600_000)) / 1000));
  });

  it.each([
    ["the caller's own price", { "gw-aig-custom-cost": '{"total_cost":0}' }],
    [
      "the caller's own price in the other spelling",
      { "cf-aig-custom-cost": '{"per_token_in":0,"per_token_out":0}' },
    ],
    ["an encoding that changes nothing", { "content-encoding": "identity" }],
    ["an encoding in capitals", { "Content-Encoding": "IDENTITY" }],
    ["no log", { "gw-aig-collect-log": "false" }],
    ["no cache", { "gw-aig-skip-cache": "true" }],
  ])("with %s", async (_, headers) => {
    await exhausts(() => call(body(), headers));
    expect(billed).toBe(1);
  });

  it.each([
    ["a slash at the end", "openai/chat/completions/"],
    ["two slashes", "openai/chat//completions"],
    ["an escaped letter", "openai/chat/c%6Fmpletions"],
    ["an escaped slash", "openai/chat%2Fcompletions"],
    ["capitals", "openai/Chat/Completions"],
    ["a version", "openai/v1/chat/completions"],
    ["a path that is not known", "openai/new/thing"],
  ])("with %s in the path", async (_, path) => {
    await exhausts(() => call(body(), {}, path));
    expect(billed).toBeLessThanOrEqual(1);
  });

  it.each([
    ["a compressed body", gzipSync(body()), { "content-encoding": "gzip" }],
    ["two models, the cheap one last", '{"model":"dear","max_tokens":6,"model":"cheap"}', {}],
    ["two models, the cheap one first", '{"model":"cheap","max_tokens":6,"model":"dear"}', {}],
    ["a second model in capitals", '{"model":"cheap","max_tokens":6,"Model":"dear"}', {}],
    ["a model with an escaped name", '{"model":"cheap","max_tokens":6,"\\u006dodel":"dear"}', {}],
    ["a model in capitals", body({ model: "DEAR" }), {}],
    ["an alias without a price", body({ model: "dear-2030-01-01" }), {}],
    ["a body of unknown encoding", gzipSync(body()), { "content-encoding": "x-unknown" }],
  ])("with %s", async (_, text, headers) => {
    await exhausts(() => call(text, headers));
    expect(billed).toBeLessThanOrEqual(1);
  });

  it.each(["openai/models/dear", "openai/models", "openai/chat/completions/models"])(
    "for what is posted to %s: some providers run a model there",
    async (path) => {
      const statuses = await exhausts(() => call(body(), {}, path));
      // How much such a request writes is not known, so it runs while there is room: the third call begins at 20 of 25 dollars.
      expect(billed).toBeLessThanOrEqual(3);
      expect(statuses.slice(3)).toEqual([429, 429, 429]);
    },
  );

  it("with a model in the path, whatever the body says", async () => {
    provider.answer = (_, response) => {
      billed += 1;
      sendJson(response, 200, { usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 6 } });
    };
    await setLimit(39);
    const text = JSON.stringify({ model: "cheap", contents: [], generationConfig: { maxOutputTokens: 6 } });
    await exhausts(() => call(text, {}, "google-ai-studio/v1beta/models/dear:generateContent"));
    await exhausts(() => call(text, {}, "google-ai-studio/v1beta/models/d%65ar:generateContent"));
    expect(billed).toBe(1);
  });

  it("with a fallback: the step that answers is charged", async () => {
    await setGateway(server, {
      spend_limits: {
        rules: [
          {
            id: "r",
            limitType: "cost",
            limit: 25,
            window: 3600,
            provider: { mode: "filter", values: ["OpenAI"] },
          },
        ],
      },
    });
    const step = (slug: string) => ({
      provider: slug,
      endpoint: "chat/completions",
      query: JSON.parse(body()) as object,
    });
    const steps = JSON.stringify([step("groq"), step("openai")]);
    await exhausts(() => send(server, "POST", "/v1/default/default", { body: steps, headers: JSON_TYPE }));
    expect(billed).toBe(1);
  });

  it("with a step that is over the limit: the next step that fits answers", async () => {
    const step = (model: string) => ({
      provider: "openai",
      endpoint: "chat/completions",
      query: { model, max_tokens: 100 },
    });
    const steps = JSON.stringify([step("dear"), step("cheap")]);
    const answer = await send(server, "POST", "/v1/default/default", { body: steps, headers: JSON_TYPE });
    expect(answer.status).toBe(200);
    expect(answer.headers["gw-aig-step"]).toBe("1");
  });

  it("for streams whose caller does not ask for usage", async () => {
    provider.answer = (request, response) => {
      billed += 1;
      const asks = (JSON.parse(request.body) as { stream_options?: { include_usage?: boolean } })
        .stream_options?.include_usage;
      const events = ['data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n'];
      if (asks === true) events.push(`data: {"choices":[],"usage":${JSON.stringify(USAGE)}}\n\n`);
      return sendEvents(response, [...events, "data: [DONE]\n\n"]);
    };
    await setLimit(45);
    let text = "";
    await exhausts(async () => {
      const answer = await call(body({ stream: true }));
      if (answer.status === 200) text = answer.body;
      return answer;
    });
    expect(billed).toBe(1);
    expect(text).toBe('data: {"choices":[{"delta":{"content":"Hi"}}]}\n\ndata: [DONE]\n\n');
  });

  it("for streams without usage, and for streams that are left", async () => {
    provider.answer = (_, response) => {
      billed += 1;
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`data: {"type":"content_block_delta","delta":{"text":"${"word ".repeat(20)}"}}\n\n`);
    };
    const leave = async () => {
      const { port } = new URL(server.url);
      const request = httpRequest({
        port,
        method: "POST",
        path: "/v1/default/default/anthropic/messages",
        headers: JSON_TYPE,
        agent: false,
      });
      request.on("error", () => undefined);
      request.end(body({ stream: true }));
      const [response] = (await once(request, "response")) as [import("node:http").IncomingMessage];
      if (response.statusCode === 200) await once(response, "data");
      const { statusCode: status = 0 } = response;
      request.destroy();
      return { status };
    };
    await leave();
    await expect
      .poll(async () => (await readLogs(server))[0])
      .toMatchObject({
        success: false,
        usage: "estimated",
        cost_estimated: true,
        // The words are about 25 tokens.
        tokens_out: 25,
      });
    expect((await leave()).status).toBe(429);
    expect(billed).toBe(1);
  });

  it("for calls that are left before the answer", async () => {
    provider.answer = () => {
      billed += 1;
    };
    const controller = new AbortController();
    const left = fetch(`${server.url}/v1/default/default/openai/chat/completions`, {
      method: "POST",
      body: body(),
      headers: JSON_TYPE,
      signal: controller.signal,
    }).catch(() => null);
    await expect.poll(() => billed).toBe(1);
    controller.abort();
    await left;
    await expect.poll(async () => (await call()).status).toBe(429);
    expect(billed).toBe(1);
  });

  it("for attempts that the caller's own timeout cuts off", async () => {
    provider.answer = () => {
      billed += 1;
    };
    // Long enough for the call to reach the provider, also if the machine pauses.
    const headers = { "gw-aig-request-timeout": "3000", "gw-aig-max-attempts": "1" };
    const first = await call(body(), headers);
    expect(first.status).toBe(504);
    expect((await call(body(), headers)).status).toBe(429);
    expect(billed).toBe(1);
  });

  it("for several answers to one request, at the same time", async () => {
    provider.answer = (_, response) => {
      billed += 1;
      sendJson(response, 200, { model: "dear", usage: { prompt_tokens: 4, completion_tokens: 60 } });
    };
    await setLimit(100);
    const statuses = await Promise.all(Array.from({ length: 12 }, () => call(body({ n: 10 }))));
    expect(statuses.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(billed).toBe(1);
  });

  /** The service reads the first 64 KB before it sends the call. */
  const sendLarge = async (start: string, end: string) => {
    const { port } = new URL(server.url);
    const path = "/v1/default/default/openai/chat/completions";
    const request = httpRequest({ port, method: "POST", path, headers: JSON_TYPE, agent: false });
    request.write(`${start},"messages":[{"role":"user","content":"`);
    request.write("word ".repeat(40_000));
    request.end(`"}]${end}}`);
    const [response] = (await once(request, "response")) as [import("node:http").IncomingMessage];
    response.resume();
    await once(response, "end");
    return { status: response.statusCode ?? 0 };
  };

  it("for a body that is sent in chunks and is larger than what is kept", async () => {
    const statuses = await exhausts(() => sendLarge('{"model":"dear","max_tokens":6', ""));
    expect(statuses).toEqual([429, 429, 429, 429, 429, 429]);
  });

  it("for a body that names another model behind what is kept", async () => {
    const statuses = await exhausts(() => sendLarge('{"model":"cheap","max_tokens":6', ',"model":"dear"'));
    expect(statuses).toEqual([200, 200, 200, 429, 429, 429]);
  });

  it("for many such bodies at once: one of them runs", async () => {
    const arrived = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    provider.answer = async (_, response) => {
      billed += 1;
      arrived.resolve();
      if (billed === 1) await answer.promise;
      sendJson(response, 200, { model: "dear", choices: [], usage: USAGE });
    };
    const large = () => sendLarge('{"model":"cheap","max_tokens":6', ',"model":"dear"');
    const first = large();
    await arrived.promise;
    const others = await Promise.all(Array.from({ length: 8 }, large));
    answer.resolve();
    expect([(await first).status, ...others.map(({ status }) => status)]).toEqual([
      200,
      ...Array<number>(8).fill(429),
    ]);
    expect(billed).toBe(1);
  });

  it("and a retry counts in limits on requests", async () => {
    await setGateway(server, {
      spend_limits: null,
      rate_limiting_limit: 3,
      rate_limiting_interval: 3600,
      retry_max_attempts: 5,
      retry_delay: 0,
    });
    other.requests.length = 0;
    await post(server, "groq/chat/completions", { body: body() });
    await post(server, "groq/chat/completions", { body: body() });
    expect(other.requests).toHaveLength(3);
  });
});

describe("a limit refuses nothing that it covers", () => {
  it("a picture counts as what a model makes of it, not by its bytes", async () => {
    await setLimit(5000);
    const url = `data:image/png;base64,${"iVBORw0KGgo".repeat(5000)}`;
    const messages = [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }];
    expect((await call(body({ messages }))).status).toBe(200);
    // A text of the same length is too much.
    expect((await call(body({ messages: [{ role: "user", content: url }] }))).status).toBe(429);
  });

  it("lists, files and counting tokens cost nothing and need no price", async () => {
    await setLimit(0.000001);
    provider.answer = (_, response) => sendJson(response, 200, { data: [] });
    for (const [method, path] of [
      ["GET", "openai/models"],
      ["POST", "openai/files"],
      ["POST", "anthropic/messages/count_tokens"],
      ["GET", "openai/batches/b1"],
    ] as const) {
      const text = method === "GET" ? undefined : "{}";
      const answer = await send(server, method, `/v1/default/default/${path}`, {
        headers: JSON_TYPE,
        ...(text === undefined ? {} : { body: text }),
      });
      expect([path, answer.status]).toEqual([path, 200]);
    }
  });

  it("a failed call costs nothing", async () => {
    provider.answer = (_, response) => sendJson(response, 500, { error: "down" });
    for (let i = 0; i < 5; i++) expect((await call()).status).toBe(500);
    provider.answer = (_, response) => sendJson(response, 200, { model: "dear", usage: USAGE });
    expect((await call()).status).toBe(200);
  });

  it("a price of the caller counts if the gateway trusts it", async () => {
    await setGateway(server, { trust_custom_cost: true });
    const headers = { "gw-aig-custom-cost": '{"total_cost":1}' };
    for (let i = 0; i < 6; i++) expect((await call(body(), headers)).status).toBe(200);
  });
});
