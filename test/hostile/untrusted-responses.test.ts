/** Responses of providers and agents are never rendered as pages of this origin and cannot act for it. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ProviderPeer, sendEvents, sendJson, startProvider } from "../peers/provider.ts";
import { callPath, post, type RawAnswer, rawExchange, send } from "../support/gateway.ts";
import { exchangeFramed, WRONG_LENGTHS } from "./support/framed-responses.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

const INERT = {
  "content-security-policy": "sandbox; default-src 'none'",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
};
const AS_ROOT = { authorization: `Bearer ${ROOT_TOKEN}` };

let provider: ProviderPeer;
let server: TestServer;
beforeAll(async () => {
  provider = await startProvider((_, response) => sendJson(response, 200, { ok: true }));
  server = await startTestServer({
    file: {
      providers: { openai: { baseUrl: provider.url }, dead: { baseUrl: "http://127.0.0.1:1" } },
      agents: { modules: [join(import.meta.dirname, "../fixtures/page-agents.ts")] },
    },
  });
});
afterAll(async () => {
  await server.stop();
  await provider.close();
});

it("every response of the gateway and of agents has the headers that prevent rendering", async () => {
  provider.answer = async (request, response) => {
    if (request.url.includes("stream")) await sendEvents(response, ["data: 1\n\n", "data: 2\n\n"]);
    else if (request.url.includes("nothing")) response.writeHead(204).end();
    else
      sendJson(response, request.url.includes("bad") ? 400 : request.url.includes("worse") ? 503 : 200, {
        a: 1,
      });
  };
  const cached = { headers: { "gw-aig-cache-ttl": "3600" } };
  const answers: Record<string, RawAnswer> = {
    provider: await post(server, "openai/x"),
    stream: await post(server, "openai/stream"),
    "no content": await post(server, "openai/nothing"),
    "provider's 400": await post(server, "openai/bad"),
    "provider's 503": await post(server, "openai/worse"),
    "cache miss": await post(server, "openai/cached", cached),
    "cache hit": await post(server, "openai/cached", cached),
    head: await send(server, "HEAD", callPath("openai/x")),
    echo: await post(server, "echo/chat/completions"),
    unreachable: await post(server, "dead/x"),
    malformed: await post(server, "openai/chat/completions", { body: "{" }),
    "unknown gateway": await send(server, "GET", "/v1/default/nowhere/openai/x"),
    "no path": await send(server, "GET", "/v1"),
    "another spelling of the path": await send(server, "GET", "/v%31/default/default/openai/x"),
    universal: await send(server, "POST", "/v1/default/default", { body: "[]" }),
    "agent's page": await send(server, "GET", "/agents/page-agent/a", { headers: AS_ROOT }),
    "agent's 404": await send(server, "GET", "/agents/page-agent/a/wrong", { headers: AS_ROOT }),
    "unknown agent": await send(server, "GET", "/agents/nobody/a", { headers: AS_ROOT }),
    "unknown method": await send(server, "POST", "/agents/page-agent/a/rpc/none", { headers: AS_ROOT }),
    "no token": await send(server, "GET", "/agents/page-agent/a"),
  };
  expect(answers["cache hit"]?.headers["gw-aig-cache-status"]).toBe("HIT");
  expect(answers["agent's page"]?.body).toContain("<script>");
  for (const [what, { headers }] of Object.entries(answers)) {
    expect({ ...headers, what }).toMatchObject({ ...INERT, what });
  }
});

it("refused upgrades below the gateway have these headers, too", async () => {
  const text = await rawExchange(
    server,
    "GET /v1/default/default/openai/x HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    /\}$/,
  );
  for (const [name, value] of Object.entries(INERT)) expect(text).toContain(`${name}: ${value}\r\n`);
});

const SPEAKING: Readonly<Record<string, string>> = {
  "Set-Cookie": "signalbox_session_8787=evil; Path=/",
  "Set-Cookie2": "a=b",
  "Clear-Site-Data": '"cookies"',
  "Service-Worker-Allowed": "/",
  "Alt-Svc": 'h3="evil.example:443"',
  "Strict-Transport-Security": "max-age=9999",
  "Public-Key-Pins": "max-age=9999",
  "Public-Key-Pins-Report-Only": "max-age=9999",
  "Expect-CT": "max-age=9999",
  Refresh: "0; url=https://evil.example",
  NEL: "{}",
  "Report-To": "{}",
  "Reporting-Endpoints": 'a="https://evil.example"',
  "Access-Control-Allow-Origin": "https://evil.example",
  "Access-Control-Allow-Credentials": "true",
  "Cross-Origin-Opener-Policy": "unsafe-none",
  "Cross-Origin-Embedder-Policy": "unsafe-none",
  "Permissions-Policy": "camera=*",
  "Feature-Policy": "camera *",
  "Origin-Agent-Cluster": "?0",
  "Accept-CH": "sec-ch-ua-full",
  "Critical-CH": "sec-ch-ua-full",
  "X-Frame-Options": "ALLOWALL",
  "Content-Security-Policy-Report-Only": "default-src *",
  SourceMap: "https://evil.example/map",
  "X-SourceMap": "https://evil.example/map",
  "WWW-Authenticate": 'Basic realm="Signalbox"',
  Link: "<https://evil.example/a.js>; rel=preload; as=script",
  "Set-Login": "logged-out",
  "Speculation-Rules": '"/x.json"',
  "gw-aig-log-id": "forged",
};

it("provider headers that act for this origin are dropped, and security policies are replaced", async () => {
  provider.answer = (_, response) =>
    sendJson(
      response,
      401,
      { ok: true },
      {
        ...SPEAKING,
        "Content-Security-Policy": "script-src *",
        "X-Content-Type-Options": "sniff",
        "Cross-Origin-Resource-Policy": "cross-origin",
      },
    );
  const { headers } = await post(server, "openai/x", { headers: { "gw-aig-collect-log": "false" } });
  expect(headers).toMatchObject(INERT);
  const left = Object.keys(SPEAKING).filter((name) => headers[name.toLowerCase()] !== undefined);
  expect(left).toEqual([]);
});

it("headers that clients of the provider's API read are kept", async () => {
  const kept = {
    "x-request-id": "req_of_the_provider",
    "x-ratelimit-remaining-tokens": "7",
    "retry-after": "3",
    "openai-organization": "acme",
    link: '<https://api.example/items?page=2>; rel="next", <https://api.example/items?page=9>; rel=last',
    "www-authenticate": 'Bearer error="invalid_token"',
    location: "https://api.example/files/1",
    etag: '"a"',
    "cache-control": "no-store",
    "content-disposition": 'attachment; filename="a.json"',
  };
  provider.answer = (_, response) => sendJson(response, 401, { ok: true }, kept);
  expect((await post(server, "openai/x")).headers).toMatchObject(kept);
});

it("an agent cannot set the dashboard's session cookie or act for the origin", async () => {
  const { headers } = await send(server, "GET", "/agents/page-agent/a/headers", { headers: AS_ROOT });
  expect(headers).toMatchObject({ ...INERT, "access-control-allow-origin": "https://app.example" });
  expect(headers["set-cookie"]).toEqual(["mine=1; Path=/agents"]);
  for (const name of ["clear-site-data", "service-worker-allowed", "strict-transport-security"]) {
    expect(headers[name]).toBeUndefined();
  }
});

it.each(WRONG_LENGTHS)("an agent's response with %s is framed by the server", async (...wrong) => {
  const bodies = await exchangeFramed(
    server.url,
    "/agents/page-agent/a/framed",
    wrong,
    `authorization: Bearer ${ROOT_TOKEN}\r\n`,
  );
  expect(bodies).toEqual([wrong[2] ?? "", await (await fetch(`${server.url}/healthz`)).text()]);
});
