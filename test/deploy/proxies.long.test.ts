/** The examples of nginx and Caddy in `deploy/`, run by the real programs: TLS, streams, WebSockets, bodies, and the address of the client. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { pinnedFetch } from "../../packages/signalbox/src/cli/pinned-fetch.ts";
import { type ProxyOptions, type ProxyProcess, startCaddy, startNginx } from "../support/proxy-process.ts";
import { makeCertificate, type TestCertificate } from "../support/test-certificate.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

const AGENTS = join(import.meta.dirname, "../fixtures/roaming-agents.ts");
const NAME = "ai.example.com";

let folder: string;
let certificate: TestCertificate;
let server: TestServer;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-proxy-"));
  certificate = makeCertificate(folder, "proxy", `DNS:${NAME}`);
  server = await startTestServer({
    file: {
      listener: { trustedProxies: ["127.0.0.1"] },
      dashboard: { allowedHosts: [NAME] },
      agents: { modules: [AGENTS] },
    },
  });
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

const PROXIES: readonly [string, (options: ProxyOptions) => Promise<ProxyProcess>, number][] = [
  ["nginx", startNginx, 301],
  ["Caddy", startCaddy, 308],
];

describe.each(PROXIES)("behind %s", (_, start, redirect) => {
  let proxy: ProxyProcess;
  let send: typeof fetch;
  const headers = { host: NAME, authorization: `Bearer ${ROOT_TOKEN}` };
  beforeAll(async () => {
    proxy = await start({ folder, certificate, port: Number(new URL(server.url).port) });
    send = pinnedFetch(certificate.pem);
  });
  afterAll(() => proxy.stop());

  it("plain HTTP is redirected to HTTPS", async () => {
    const [response] = (await once(
      get(`${proxy.plainUrl}/healthz`, { headers: { host: NAME } }),
      "response",
    )) as [IncomingMessage];
    response.resume();
    expect([response.statusCode, response.headers.location]).toEqual([
      redirect,
      expect.stringMatching(new RegExp(`^https://${NAME}(:\\d+)?/healthz$`)),
    ]);
  });

  it("a stream is not held back: its first piece arrives while the rest does not exist yet", async () => {
    const abort = new AbortController();
    const response = await send(`${proxy.url}/agents/roamer/one/endless`, { headers, signal: abort.signal });
    const { value } = (await response.body?.getReader().read()) ?? {};
    expect([response.status, value?.length]).toEqual([200, expect.any(Number)]);
    abort.abort();
  });

  it("a WebSocket is opened", async () => {
    const options = { headers, ca: certificate.pem, servername: NAME };
    const socket = new WebSocket(`${proxy.url.replace("https", "wss")}/agents/roamer/one`, options);
    const [frame] = (await once(socket, "message")) as [Buffer];
    expect(JSON.parse(frame.toString())).toMatchObject({ type: "cf_agent_identity", name: "one" });
    socket.close();
    await once(socket, "close");
  });

  it("a body of several megabytes passes", async () => {
    const body = "x".repeat(3_000_000);
    const response = await send(`${proxy.url}/agents/roamer/one/size`, { method: "POST", headers, body });
    expect([response.status, await response.text()]).toEqual([200, "3000000"]);
  });

  it("the client's own address arrives, whatever it claims", async () => {
    const response = await send(`${proxy.url}/accounts/default/tokens`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json", "x-forwarded-for": "203.0.113.9" },
      body: JSON.stringify({ name: "by proxy", permissions: ["tags.read"] }),
    });
    expect(response.status).toBe(200);
    const { body } = await server.api("GET", "/accounts/default/audit_logs");
    expect(body.result[0].actor).toMatchObject({ type: "root", ip: "::1" });
  });

  it("the dashboard's cookie is secure, and its host is accepted", async () => {
    const response = await send(`${proxy.url}/dashboard/session`, {
      method: "POST",
      headers: { host: NAME, origin: `https://${NAME}`, "content-type": "application/json" },
      body: JSON.stringify({ token: ROOT_TOKEN }),
    });
    expect([response.status, response.headers.get("set-cookie")]).toEqual([
      200,
      expect.stringMatching(/; Secure$/),
    ]);
  });
});
