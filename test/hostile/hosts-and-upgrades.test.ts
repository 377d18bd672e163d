/** Requests with more than one host or protocol: each is refused or has one meaning everywhere. */
import { connect } from "node:net";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
let cookie: string;
beforeAll(async () => {
  server = await startTestServer({ file: { dashboard: { allowedHosts: ["box.example.com"] } } });
  const { host } = new URL(server.url);
  const login = await fetch(`${server.url}/dashboard/session`, {
    method: "POST",
    headers: { origin: `http://${host}` },
    body: JSON.stringify({ token: ROOT_TOKEN }),
  });
  cookie = login.headers.get("set-cookie")?.split(";")[0] ?? "";
});
afterAll(() => server.stop());

/** The whole response to a raw request; the connection is closed after it. */
async function raw(head: string, body = ""): Promise<{ status: number; text: string }> {
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  let text = "";
  socket.setEncoding("latin1").on("data", (chunk: string) => (text += chunk));
  socket.write(`${head.replaceAll("\n", "\r\n")}\r\nconnection: close\r\n\r\n${body}`);
  await once(socket, "close");
  return { status: Number(text.slice(9, 12)), text };
}

describe("the host of a request", () => {
  it("a second Host header is refused on every path, with and without a session", async () => {
    const own = new URL(server.url).host;
    for (const path of [
      "/healthz",
      "/accounts",
      "/v1/default/default/echo/models",
      "/agents/x/y",
      "/dashboard",
      "/",
    ]) {
      for (const [first, second] of [
        [own, "evil.example"],
        ["evil.example", own],
        [own, own],
      ]) {
        const answer = await raw(`GET ${path} HTTP/1.1\nHost: ${first}\nhOsT: ${second}\ncookie: ${cookie}`);
        expect([path, answer.status]).toEqual([path, 400]);
        expect(answer.text).toContain('"code":7005');
      }
    }
  });

  it("an invalid Host is refused", async () => {
    for (const host of ["a b", "evil.example/x", 'x"><script>', "x\\y", "a@b", "ä"]) {
      expect([host, (await raw(`GET /healthz HTTP/1.1\nHost: ${host}`)).status]).toEqual([host, 400]);
    }
    expect((await raw("GET /healthz HTTP/1.1\nHost: [::1]:80")).status).toBe(200);
  });

  it("the host of an absolute target replaces the Host header, also for the session's checks", async () => {
    const own = new URL(server.url).host;
    const absolute = (target: string, host: string) =>
      raw(`GET ${target} HTTP/1.1\nHost: ${host}\ncookie: ${cookie}`);
    expect((await absolute(`http://${own}/accounts`, own)).status).toBe(200);
    expect((await absolute("http://evil.example/accounts", own)).status).toBe(403);
    expect((await absolute(`http://${own}/accounts`, "evil.example")).status).toBe(200);
    expect((await absolute("http://evil@evil.example/healthz", own)).status).toBe(400);
    expect((await absolute("http://example.test", own)).status).toBe(404);
  });

  it("an unknown host is not repeated in any response", async () => {
    const read = async (path: string, host: string, headers: Record<string, string> = {}) => {
      const request = httpRequest(server.url + path, {
        agent: false,
        headers: { host, authorization: `Bearer ${ROOT_TOKEN}`, ...headers },
      });
      request.end();
      const [response] = (await once(request, "response")) as [IncomingMessage];
      let text = "";
      for await (const chunk of response) text += String(chunk);
      return text;
    };
    const path = "/accounts/default/ai-gateway/gateways/default/url/echo";
    expect(await read(path, "evil.example")).toContain(`"result":"${server.url}/v1/default/default/echo"`);
    expect(await read(path, "localhost:1")).toContain('"http://localhost:1/v1/default/default/echo"');
    expect(await read(path, "box.example.com", { "x-forwarded-proto": "https" })).toContain(
      '"https://box.example.com/v1/default/default/echo"',
    );
    expect(await read("/dashboard/first-commands", "evil.example")).not.toContain("evil.example");
    expect(await read("/dashboard/first-commands", "box.example.com")).toContain("http://box.example.com/");
  });
});

describe("an offer to upgrade", () => {
  it("an upgrade to another protocol than WebSocket is ignored, and the request is answered normally", async () => {
    for (const upgrade of ["h2c", "TLS/1.0", "websocket2", "h2c, websocket"]) {
      const head = `Host: x\nConnection: Upgrade, HTTP2-Settings\nUpgrade: ${upgrade}\nHTTP2-Settings: AAMAAABkAAQAAP__`;
      expect([upgrade, (await raw(`GET /healthz HTTP/1.1\n${head}`)).status]).toEqual([upgrade, 200]);
    }
  });

  it("an ignored upgrade leaves the request body intact", async () => {
    const body = JSON.stringify({ id: "upgraded" });
    const head = `POST /accounts HTTP/1.1\nHost: x\nConnection: Upgrade\nUpgrade: h2c\nauthorization: Bearer ${ROOT_TOKEN}\ncontent-type: application/json\ncontent-length: ${body.length}`;
    expect((await raw(head, body)).status).toBe(200);
    expect((await server.api("GET", "/accounts/upgraded")).status).toBe(200);
  });

  it("a WebSocket upgrade on a path without WebSockets is refused", async () => {
    const answer = await raw(
      "GET /healthz HTTP/1.1\nHost: x\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    );
    expect(answer.status).toBe(404);
  });
});
