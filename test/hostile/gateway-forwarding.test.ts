/** Private headers do not reach a provider in any spelling, and hostile requests never cause a 500. */
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ProviderPeer, sendJson } from "../peers/provider.ts";
import { callPath, CHAT, post, rawExchange, readLogs, send, startWithProvider } from "../support/gateway.ts";
import { ROOT_TOKEN, type TestServer } from "../support/test-server.ts";

let provider: ProviderPeer;
let server: TestServer;
let stop: () => Promise<void>;
beforeAll(async () => {
  ({ provider, server, stop } = await startWithProvider((at) => ({
    file: { providers: { openai: at, anthropic: at, dead: { baseUrl: "http://127.0.0.1:1" } } },
  })));
});
afterAll(() => stop());
beforeEach(() => {
  provider.requests.length = 0;
});

const universal = (body: string | Buffer) =>
  send(server, "POST", "/v1/default/default", { body, headers: { "content-type": "application/json" } });
const step = (more: object) =>
  universal(JSON.stringify([{ provider: "openai", endpoint: "x", query: {}, ...more }]));

describe("headers about the caller", () => {
  const PRIVATE = [
    "x-forwarded-for",
    "x-forwarded-client-cert",
    "x-forwarded-anything",
    "forwarded",
    "x-real-ip",
    "cf-connecting-ip",
    "cf-access-jwt-assertion",
    "true-client-ip",
    "x-client-ip",
    "x-goog-iap-jwt-assertion",
    "x-amzn-oidc-accesstoken",
    "origin",
    "referer",
    "sec-fetch-site",
    "sec-ch-ua",
    "cookie",
    "proxy-authorization",
    "gw-aig-unknown-option",
    "gw_aig_authorization",
    "GW_AIG-authorization",
    "cf_aig_authorization",
    "x_forwarded_for",
    "X_Real-IP",
  ];

  it.each(PRIVATE)("%s does not reach the provider", async (name) => {
    await post(server, "openai/x", { headers: { [name]: "value-of-the-caller", "x-kept": "yes" } });
    await step({ headers: { [name]: "value-of-the-caller", "x-kept": "yes" } });
    expect(provider.requests).toHaveLength(2);
    for (const { headers } of provider.requests) {
      expect(headers["x-kept"]).toBe("yes");
      expect(JSON.stringify(headers)).not.toContain("value-of-the-caller");
    }
  });

  it("headers of a provider's own client reach the provider", async () => {
    const kept = {
      "user-agent": "OpenAI/JS 6",
      "http-referer": "https://app.example",
      "x-title": "app",
      "anthropic-beta": "a",
      "openai-project": "p",
      "x-stainless-lang": "js",
      "idempotency-key": "k",
      "x-under_score": "u",
    };
    await post(server, "openai/x", { headers: kept });
    expect(provider.requests[0]?.headers).toMatchObject(kept);
  });
});

describe("a Signalbox token in a place that is not its own", () => {
  const places: [name: string, headers: (token: string) => Record<string, string>][] = [
    ["authorization without scheme", (token) => ({ authorization: token })],
    [
      "basic authorization",
      (token) => ({ authorization: `Basic ${Buffer.from(`x:${token}`).toString("base64")}` }),
    ],
    ["a header that names the request", (token) => ({ "x-request-id": token })],
    ["a header of any other name", (token) => ({ "x-anything": token })],
  ];
  const refused = (answer: { status: number; body: string }) => {
    expect(answer.status).toBe(401);
    expect(JSON.parse(answer.body)).toMatchObject({
      internalCode: 2009,
      message: expect.stringContaining("A Signalbox token stands where the provider's key belongs") as string,
    });
    expect(provider.requests).toEqual([]);
  };

  it.each(places)("in %s: 401, and nothing is sent upstream", async (_, headers) => {
    for (const token of [ROOT_TOKEN, await server.token(["gateway.run"])]) {
      refused(await post(server, "openai/x", { headers: headers(token) }));
      const viaStep = await step({ headers: headers(token) });
      expect(viaStep.status).toBe(401);
      expect(provider.requests).toEqual([]);
    }
  });

  it.each([
    ["the query", (token: string) => `openai/x?alt=1&name=${token}`],
    [
      "the query, encoded",
      (token: string) => `openai/x?name=%${token.charCodeAt(0).toString(16)}${token.slice(1)}`,
    ],
    ["the path", (token: string) => `openai/bot/${token}/send`],
  ])("in %s: 401, and nothing is sent upstream", async (_, path) => {
    for (const token of [ROOT_TOKEN, await server.token(["gateway.run"])]) {
      refused(await post(server, path(token)));
      expect((await step({ endpoint: path(token).slice("openai/".length) })).status).toBe(401);
    }
  });

  it("a provider's key that resembles a Signalbox token is forwarded", async () => {
    const resembling = `sbx_${"a".repeat(46)}`;
    expect((await post(server, "openai/x", { headers: { "x-api-key": resembling } })).status).toBe(200);
    expect((await post(server, "openai/x", { headers: { "x-api-key": `${ROOT_TOKEN}x` } })).status).toBe(200);
  });
});

describe("hostile requests", () => {
  it.each(["__proto__", "constructor", "toString", "hasOwnProperty"])(
    "the option %s is unknown",
    async (name) => {
      for (const spelling of [`gw-aig-${name}`, `cf-aig-${name}`]) {
        expect((await post(server, "openai/x", { headers: { [spelling]: "x" } })).status).toBe(200);
        expect((await step({ headers: { [spelling]: "x" } })).status).toBe(200);
      }
    },
  );

  it.each([
    ["a step", (deep: string) => `[{"provider":"openai","endpoint":"x","query":${deep}}]`],
    ["the steps", (deep: string) => deep],
    ["a step's headers", (deep: string) => `[{"provider":"openai","endpoint":"x","headers":{"a":${deep}}}]`],
    ["a step's config", (deep: string) => `[{"provider":"openai","endpoint":"x","config":${deep}}]`],
  ])("%s nested 200,000 deep is a malformed request", async (_, body) => {
    const deep = "[".repeat(200_000) + "]".repeat(200_000);
    const answer = await universal(body(deep));
    expect(answer.status, answer.body).toBe(400);
    expect(JSON.parse(answer.body)).toMatchObject({ internalCode: 2002 });
  });

  it("a plain call with a body nested 200,000 deep is answered", async () => {
    const deep = `{"model":"echo","messages":[{"role":"user","content":${"[".repeat(200_000)}${"]".repeat(200_000)}}]}`;
    expect((await post(server, "echo/chat/completions", { body: deep })).status).toBe(200);
    expect((await post(server, "openai/chat/completions", { body: deep })).status).toBe(200);
  });

  it("TRACE is refused, also on the universal endpoint", async () => {
    for (const path of [callPath("openai/x"), "/v1/default/default"]) {
      const answer = await send(server, "TRACE", path);
      expect(answer.status).toBe(405);
      expect(answer.headers["gw-aig-error-origin"]).toBe("gateway");
    }
    expect(provider.requests).toEqual([]);
  });

  it.each(["gzip, chunked", "x-own , chunked"])(
    "a body with Transfer-Encoding: %s is refused",
    async (coding) => {
      const body = coding.startsWith("gzip") ? gzipSync(CHAT) : Buffer.from(CHAT);
      const wire = `POST ${callPath("openai/x")} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: ${coding}\r\n\r\n${body.length.toString(16)}\r\n${body.toString("latin1")}\r\n0\r\n\r\n`;
      const text = await rawExchange(server, wire, /\}$/);
      expect(text).toMatch(/^HTTP\/1\.1 400 /);
      expect(text).toContain('"internalCode":2002');
      expect(provider.requests).toEqual([]);
    },
  );

  it("`chunked` is accepted in any letter case", async () => {
    const wire = `POST ${callPath("openai/x")} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`;
    expect(await rawExchange(server, wire, /\}$/)).toMatch(/^HTTP\/1\.1 200 /);
    expect(provider.requests[0]?.body).toBe("abc");
  });

  it("another spelling of the first path segment reaches the same route", async () => {
    for (const prefix of ["/v%31", "/%76%31", "/%761"]) {
      expect((await send(server, "GET", `${prefix}/default/default/openai/models`)).status).toBe(200);
      expect(provider.requests.at(-1)?.url).toBe("/v1/models");
      const unknown = await send(server, "GET", `${prefix}/1/default/openai/models`);
      expect(JSON.parse(unknown.body)).toMatchObject({ internalCode: 2001 });
    }
  });
});

it("a call that no provider answered costs nothing, whatever price the caller sets", async () => {
  const headers = { "gw-aig-custom-cost": '{"total_cost":5}' };
  expect((await post(server, "dead/x", { headers })).status).toBe(502);
  expect((await readLogs(server))[0]).toMatchObject({ status_code: 502, cost: 0 });
  provider.answer = (_, response) => sendJson(response, 400, { error: "no" });
  await post(server, "openai/x", { headers });
  expect((await readLogs(server))[0]).toMatchObject({ status_code: 400, cost: 0 });
  provider.answer = (_, response) => sendJson(response, 200, { ok: true });
  await post(server, "openai/x", { headers });
  expect((await readLogs(server))[0]).toMatchObject({ status_code: 200, cost: 5 });
});
