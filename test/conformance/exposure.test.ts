/** What is reachable on loopback, on other addresses, and with a separate administration address. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { once } from "node:events";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RawClient } from "../support/agents.ts";
import { runCliProcess, spawnCli } from "../support/server-process.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer | undefined;
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-exposed-"));
});
afterEach(async () => {
  await server?.stop();
  server = undefined;
  rmSync(folder, { recursive: true, force: true });
});

/** Some containers have no IPv6; the rules for its addresses also have unit tests. */
const hasIpv6 = Object.values(networkInterfaces()).some((list) =>
  list?.some(({ family }) => family === "IPv6"),
);
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const statusOf = async (url: string, headers: Record<string, string> = {}) =>
  (await fetch(url, { headers, redirect: "manual" })).status;

describe("the OpenAPI description", () => {
  it("the description is built once and answered 304 to a client that has it", async () => {
    server = await startTestServer();
    const first = await fetch(`${server.url}/openapi.json`);
    const etag = first.headers.get("etag") ?? "";
    expect(etag).toMatch(/^"[\w-]+"$/);
    const again = await fetch(`${server.url}/openapi.json`, { headers: { "if-none-match": etag } });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    const other = await fetch(`${server.url}/openapi.json`, { headers: { "if-none-match": '"other"' } });
    expect([other.status, await other.text()]).toEqual([200, await first.text()]);
  });

  it("each operation states its permission and what a token bound to a gateway reaches", async () => {
    server = await startTestServer();
    const { body } = await server.api("GET", "/openapi.json");
    const one = body.paths["/accounts/{account_id}/ai-gateway/gateways/{gateway_id}"].get;
    expect([one["x-signalbox-access"], one["x-signalbox-gateway"]]).toEqual(["gateway.read", "{gateway_id}"]);
    const list = body.paths["/accounts/{account_id}/tokens"].get;
    expect([list["x-signalbox-access"], list["x-signalbox-gateway"]]).toEqual(["tokens.edit", "narrowed"]);
    const tags = body.paths["/accounts/{account_id}/tags"].get;
    expect(tags["x-signalbox-gateway"]).toBe("refused");
  });
});

describe("the root path", () => {
  it("a browser is redirected to the dashboard, and a program gets 404", async () => {
    server = await startTestServer();
    const page = await fetch(`${server.url}/`, { headers: { accept: "text/html,*/*" }, redirect: "manual" });
    expect([page.status, page.headers.get("location")]).toEqual([303, "/dashboard/"]);
    const { status, body } = await server.api("GET", "/");
    expect([status, body.errors[0].code]).toEqual([404, 7003]);
    expect(body.errors[0].message).toContain("/dashboard");
    expect(await statusOf(`${server.url}//x`, { accept: "text/html" })).toBe(404);
  });
});

describe("bound to loopback", () => {
  it.each(["127.0.0.1", "localhost", ...(hasIpv6 ? ["::1", "::ffff:127.0.0.1"] : [])])(
    "%s: metrics and description are public, and no warning is logged",
    async (host) => {
      server = await startTestServer({ host });
      expect(await statusOf(`${server.url}/metrics`)).toBe(200);
      expect(await statusOf(`${server.url}/openapi.json`)).toBe(200);
      expect(server.service.warnings).toEqual([]);
    },
  );
});

describe("bound to loopback, behind a proxy on the same machine", () => {
  it("what a proxy has forwarded needs a token, unless a trusted proxy names a client on this machine", async () => {
    server = await startTestServer();
    const { url } = server;
    const [forwarded, local] = [{ "x-forwarded-for": "203.0.113.9" }, { "x-forwarded-for": "127.0.0.1" }];
    for (const path of ["/metrics", "/openapi.json"]) {
      expect(await statusOf(url + path)).toBe(200);
      for (const headers of [forwarded, local, { forwarded: "for=203.0.113.9" }, { via: "1.1 proxy" }])
        expect([path, headers, await statusOf(url + path, headers)]).toEqual([path, headers, 401]);
      expect(await statusOf(url + path, { ...forwarded, ...bearer(ROOT_TOKEN) })).toBe(200);
    }
    await server.stop();
    server = await startTestServer({ file: { listener: { trustedProxies: ["127.0.0.1"] } } });
    const unnamed = [{ "x-real-ip": "203.0.113.9" }, { "x-forwarded-for": "unknown" }];
    const answers = [local, forwarded, ...unnamed].map((headers) =>
      statusOf(`${server?.url}/metrics`, headers),
    );
    expect(await Promise.all(answers)).toEqual([200, 401, 401, 401]);
  });

  it("wrong tokens are counted by the client's address, not by the proxy's", async () => {
    server = await startTestServer({ file: { listener: { trustedProxies: ["127.0.0.1"] } } });
    const attempt = (address: string) =>
      statusOf(`${server?.url}/accounts/default/tokens`, { ...bearer("wrong"), "x-forwarded-for": address });
    for (let i = 0; i < 300; i++) await attempt("203.0.113.1");
    expect([await attempt("203.0.113.1"), await attempt("203.0.113.2")]).toEqual([429, 401]);
  });
});

describe("bound to other addresses", () => {
  it("metrics need the root token or gateway.read of the operator's account; the description needs any token", async () => {
    server = await startTestServer({ host: "0.0.0.0" });
    await server.api("POST", "/accounts", { id: "tenant" });
    const reader = await server.token(["gateway.read"]);
    const bound = await server.token(["gateway.read"], { gateway_id: "default" });
    const tagger = await server.token(["tags.read"]);
    const tenant = await server.token(["gateway.read"], { account: "tenant" });
    for (const [token, metrics, description] of [
      [ROOT_TOKEN, 200, 200],
      [reader, 200, 200],
      [bound, 403, 200],
      [tagger, 403, 200],
      [tenant, 403, 200],
      ["wrong", 401, 401],
    ] as const) {
      expect(await statusOf(`${server.url}/metrics`, bearer(token))).toBe(metrics);
      expect(await statusOf(`${server.url}/openapi.json`, bearer(token))).toBe(description);
    }
    expect(await statusOf(`${server.url}/metrics`)).toBe(401);
    expect(await statusOf(`${server.url}/openapi.json`)).toBe(401);
    expect(await statusOf(`${server.url}/healthz`)).toBe(200);
    expect(await statusOf(`${server.url}/readyz`)).toBe(200);
  });

  it.each(["0.0.0.0", ...(hasIpv6 ? ["::"] : [])])(
    "%s: the URL can be opened, and a warning names each gateway without authentication",
    async (host) => {
      server = await startTestServer({ host });
      expect(server.url).toMatch(/^http:\/\/(127\.0\.0\.1|\[::1\]):\d+$/);
      expect(await statusOf(`${server.url}/healthz`)).toBe(200);
      expect(server.service.warnings.join()).toContain("gateway default/default has authentication off");
      const logged = server.logs.filter(({ level }) => level === "warn").map(({ msg }) => msg);
      expect(logged.join()).toContain("gateway default/default has authentication off");
    },
  );

  it("public agents cause a warning; a gateway with authentication does not", async () => {
    const first = await startTestServer({ dataDir: folder });
    await first.api("PUT", "/accounts/default/ai-gateway/gateways/default", { authentication: true });
    await first.stop();
    server = await startTestServer({
      host: "0.0.0.0",
      dataDir: folder,
      file: { agents: { access: "public" } },
    });
    expect(server.service.warnings).toEqual([expect.stringContaining('agents.access is "public"')]);
  });

  it("--metrics-public makes only the metrics public, and the start reports it", async () => {
    const child = spawnCli(
      ["serve", "--host", "0.0.0.0", "--port", "0", "--metrics-public", "--data-dir", join(folder, "data")],
      { cwd: folder },
    );
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    await expect.poll(() => text).toContain("Try it");
    const url = /on (http:\S+)/.exec(text)?.[1] ?? "";
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(text).toContain("Warning: gateway default/default has authentication off");
    expect(await statusOf(`${url}/metrics`)).toBe(200);
    expect(await statusOf(`${url}/openapi.json`)).toBe(401);
    child.kill("SIGTERM");
    await once(child, "exit");
  });
});

describe("with a separate administration address", () => {
  it("each address serves its own routes, and both report their health", async () => {
    server = await startTestServer({ admin: { host: "127.0.0.1", port: 0 } });
    const { url, adminUrl } = server.service;
    expect(adminUrl).not.toBe(url);
    for (const path of [
      "/accounts",
      "/client/v4/accounts",
      "/dashboard/",
      "/metrics",
      "/openapi.json",
      "/",
      "/login-links",
    ]) {
      expect([path, await statusOf(url + path, bearer(ROOT_TOKEN))]).toEqual([path, 404]);
    }
    for (const path of ["/v1/default/default/echo/models", "/webhooks/x"]) {
      expect([path, await statusOf(adminUrl + path, bearer(ROOT_TOKEN))]).toEqual([path, 404]);
    }
    for (const base of [url, adminUrl]) {
      expect(await statusOf(`${base}/healthz`)).toBe(200);
      expect(await statusOf(`${base}/readyz`)).toBe(200);
    }
    expect(await statusOf(`${adminUrl}/accounts`, bearer(ROOT_TOKEN))).toBe(200);
    expect(await statusOf(`${adminUrl}/metrics`)).toBe(200);
    const body = JSON.stringify({ model: "echo", messages: [{ role: "user", content: "x" }] });
    const call = await fetch(`${url}/v1/default/default/echo/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    expect(call.status).toBe(200);
  });

  it("sessions are valid on the administration address, agents included, and not on the traffic address", async () => {
    server = await startTestServer({ admin: { host: "127.0.0.1", port: 0 } });
    const { url, adminUrl } = server.service;
    const link = await server.service.createLoginLink();
    expect(link.startsWith(adminUrl)).toBe(true);
    const login = await fetch(link, { redirect: "manual" });
    const cookie = login.headers.get("set-cookie")?.split(";")[0] ?? "";
    const path = "/agents/webhook-agent/my-device";
    const live = new RawClient(adminUrl + path, { token: null, headers: { cookie, origin: adminUrl } });
    await live.opened();
    await live.greeted();
    const page = new RawClient(url + path, { token: null, headers: { cookie, origin: url } });
    expect(await page.closed()).toBe(4401);
    live.close();
    const session = await (await fetch(`${adminUrl}/dashboard/session`, { headers: { cookie } })).json();
    expect(session).toMatchObject({ result: { is_root: true, traffic_url: url } });
    const commands = await (
      await fetch(`${adminUrl}/dashboard/first-commands`, { headers: { cookie } })
    ).text();
    expect(commands).toContain(`${url}/v1/default/default/echo`);
    const { host } = new URL(adminUrl);
    const request = httpRequest(`${adminUrl}/accounts/default/ai-gateway/gateways/default/url/echo`, {
      headers: { ...bearer(ROOT_TOKEN), host },
    });
    request.end();
    const [response] = (await once(request, "response")) as [IncomingMessage];
    let text = "";
    for await (const chunk of response) text += String(chunk);
    expect(text).toContain(`"result":"${url}/v1/default/default/echo"`);
  });

  it("commands find the administration address, and the first line of --json has both addresses and the root token's file", async () => {
    const args = ["--data-dir", join(folder, "data")];
    const child = spawnCli(["serve", "--json", "--port", "0", "--admin-port", "0", ...args], {
      cwd: folder,
      env: { WEBHOOK_SECRET: "a-secret-for-webhooks" },
    });
    const [line] = (await once(child.stdout.setEncoding("utf8"), "data")) as [string];
    const start = JSON.parse(line) as Record<string, string>;
    expect(start).toEqual({
      url: expect.any(String),
      pid: child.pid,
      admin_url: expect.any(String),
      root_token_file: join(folder, "data", "root-token"),
    });
    const token = readFileSync(start["root_token_file"] ?? "", "utf8").trim();
    expect(line).not.toContain(token);
    const list = await runCliProcess(["account", "list", ...args], { cwd: folder });
    expect([list.code, list.stdout]).toEqual([0, expect.stringContaining("default")]);
    const link = await runCliProcess(["login-link", ...args], { cwd: folder });
    expect(link.stdout).toMatch(new RegExp(`^${start["admin_url"]}/dashboard/login`));
    const sent = await runCliProcess(["webhooks", "send", "generic", "my-device", ...args], {
      cwd: folder,
      env: { WEBHOOK_SECRET: "a-secret-for-webhooks" },
    });
    expect([sent.code, sent.stderr]).toEqual([0, ""]);
    child.kill("SIGTERM");
    const [code] = (await once(child, "exit")) as [number];
    expect(code).toBe(0);
  });

  it("a taken administration port ends the start with one line and leaves no listener open", async () => {
    server = await startTestServer();
    const { port } = new URL(server.url);
    const { code, stderr } = await runCliProcess(
      ["serve", "--port", "0", "--admin-port", port, "--data-dir", join(folder, "data")],
      { cwd: folder },
    );
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^signalbox: cannot listen on .*: the process \d+ .* uses port .*\n$/),
    ]);
    const wrong = await runCliProcess(["serve"], { cwd: folder, env: { ADMIN_PORT: "x" } });
    expect(wrong.stderr).toBe('signalbox: ADMIN_PORT: expected a number from 0 to 65535, found "x"\n');
  });
});
