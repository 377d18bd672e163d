/** The dashboard's routes over plain HTTP: sessions, login links, cookie checks, and how its files are served. */
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { runCliProcess, spawnCli } from "../support/server-process.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
let now = Date.parse("2026-06-01T12:00:00Z");
const clock = { now: () => now };

beforeAll(async () => {
  server = await startTestServer({ clock, file: { dashboard: { allowedHosts: ["box.example.com"] } } });
});
beforeEach(() => {
  now = Date.parse("2026-06-01T12:00:00Z");
});
afterAll(() => server.stop());

interface RawAnswer {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
}

/** node:http, because fetch does not allow tests to set Host, Origin and Cookie. */
function raw(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string,
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(server.url + path, { method, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
      );
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

const origin = () => ({ origin: server.url });
const setCookieOf = (answer: RawAnswer) => answer.headers["set-cookie"]?.[0] ?? "";
const cookieOf = (answer: RawAnswer) => setCookieOf(answer).split(";")[0] ?? "";

async function logIn(token = ROOT_TOKEN): Promise<string> {
  const answer = await raw("POST", "/dashboard/session", origin(), JSON.stringify({ token }));
  expect(answer.status).toBe(200);
  return cookieOf(answer);
}

const accounts = (headers: Record<string, string>) => raw("GET", "/accounts", headers);

describe("a login link", () => {
  it("a login link opens one session and leaves no code in the address", async () => {
    const link = new URL(await server.service.createLoginLink());
    const first = await raw("GET", link.pathname + link.search);
    expect(first.status).toBe(303);
    expect(first.headers["location"]).toBe("/dashboard/");
    expect(first.headers["cache-control"]).toBe("no-store");
    expect((await accounts({ cookie: cookieOf(first) })).status).toBe(200);
    const second = await raw("GET", link.pathname + link.search);
    expect(second.headers["location"]).toBe("/dashboard/login?expired");
    expect(second.headers["set-cookie"]).toBeUndefined();
  });

  it("a login link expires after ten minutes", async () => {
    const link = new URL(await server.service.createLoginLink());
    now += 10 * 60_000;
    const answer = await raw("GET", link.pathname + link.search);
    expect(answer.headers["location"]).toBe("/dashboard/login?expired");
  });

  it("login links are created for the root token only, and not for a session", async () => {
    const made = await server.api("POST", "/login-links");
    expect(made.body.result.path).toMatch(/^\/dashboard\/login\?code=[\w-]{43}$/);
    const token = await server.token(["tokens.edit"]);
    expect((await server.api("POST", "/login-links", undefined, token)).status).toBe(403);
    const cookie = await logIn();
    expect((await raw("POST", "/login-links", { cookie, ...origin() })).status).toBe(403);
  });
});

describe("a session of the root token", () => {
  it("gets no backup with secrets: it would be the root token for ever", async () => {
    const stored = { provider_slug: "openai", secret: "sk-1" };
    await server.api("POST", "/accounts/default/ai-gateway/gateways/default/provider_configs", stored);
    const cookie = await logIn();
    const backUp = (fields: object) => {
      const body = JSON.stringify({ call_logs: false, ...fields });
      return raw("POST", "/backup", { cookie, "content-type": "application/json", ...origin() }, body);
    };
    for (const fields of [{}, { secrets: true }]) expect((await backUp(fields)).status).toBe(403);
    const archive = await backUp({ secrets: false });
    expect(archive.status).toBe(200);
    expect(archive.body).toContain("manifest.json");
    for (const name of ["root-token", "encryption-key", "webhook-secret", "master-key"])
      expect(archive.body).not.toContain(`${name}\0`);
    const withSecrets = await server.api("POST", "/backup", { call_logs: false });
    expect(withSecrets.text).toContain("master-key\0");
  });
});

describe("the command line", () => {
  it("`serve` prints a login link on a terminal, and `login-link` prints another", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "signalbox-link-"));
    const idle = await runCliProcess(["login-link", "--data-dir", dataDir]);
    expect(idle.code).toBe(2);
    expect(idle.stderr).toContain("no server runs on");
    const preload = new URL("../support/terminal-preload.ts", import.meta.url).href;
    const child = spawnCli(["serve", "--port", "0", "--data-dir", dataDir, "--log-level", "error"], {
      env: { NODE_OPTIONS: `--import=${preload}` },
    });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
    await expect.poll(() => output).toMatch(/\/dashboard\/login\?code=[\w-]{43}\n/);
    const printed = /http:\S+login\?code=\S+/.exec(output)?.[0] ?? "";
    const requested = await runCliProcess(["login-link", "--data-dir", dataDir]);
    expect(requested.stderr).toBe("");
    for (const link of [printed, requested.stdout.trim()]) {
      const answer = await fetch(link, { redirect: "manual" });
      expect(answer.headers.get("location")).toBe("/dashboard/");
    }
    child.kill("SIGTERM");
    await once(child, "exit");
    await rm(dataDir, { recursive: true, force: true });
  });
});

describe("a session", () => {
  it("the session cookie is HttpOnly and SameSite=Strict", async () => {
    const answer = await raw("POST", "/dashboard/session", origin(), JSON.stringify({ token: ROOT_TOKEN }));
    expect(setCookieOf(answer)).toMatch(
      /^signalbox_session_\d+=[\w-]{43}; Path=\/; Max-Age=604800; HttpOnly; SameSite=Strict$/,
    );
    expect(answer.body).not.toContain(ROOT_TOKEN);
  });

  it("the session cookie is Secure behind a proxy that reports https", async () => {
    const answer = await raw(
      "POST",
      "/dashboard/session",
      { host: "box.example.com", origin: "https://box.example.com", "x-forwarded-proto": "https" },
      JSON.stringify({ token: ROOT_TOKEN }),
    );
    expect(setCookieOf(answer)).toMatch(/; Secure$/);
  });

  it("an unknown token and an invalid body open no session", async () => {
    const wrong = await raw("POST", "/dashboard/session", origin(), '{"token":"sbx_wrong"}');
    expect(wrong.status).toBe(401);
    expect(wrong.headers["set-cookie"]).toBeUndefined();
    expect((await raw("POST", "/dashboard/session", origin(), "nonsense")).status).toBe(400);
    const huge = JSON.stringify({ token: "x".repeat(10_000) });
    expect((await raw("POST", "/dashboard/session", origin(), huge)).status).toBe(413);
  });

  it("the current user is reported, or null without a session", async () => {
    const anonymous = await raw("GET", "/dashboard/session");
    expect(anonymous.status).toBe(200);
    expect(JSON.parse(anonymous.body)).toMatchObject({ success: true, result: null });
    const token = await server.token(["tags.read"]);
    const loggedIn = await raw("GET", "/dashboard/session", { cookie: await logIn(token) });
    expect(JSON.parse(loggedIn.body).result).toMatchObject({
      is_root: false,
      permissions: ["tags.read"],
      accounts: [{ id: "default" }],
    });
  });

  it("a session has exactly the permissions of its token", async () => {
    const cookie = await logIn(await server.token(["tags.read"]));
    expect((await raw("GET", "/accounts/default/tags/keys", { cookie })).status).toBe(200);
    expect((await raw("GET", "/accounts/default/tokens", { cookie })).status).toBe(403);
  });

  it("a session ends with its token", async () => {
    const made = await server.api("POST", "/accounts/default/tokens", {
      name: "short",
      permissions: ["tags.read"],
    });
    const cookie = await logIn(made.body.result.token as string);
    await server.api("DELETE", `/accounts/default/tokens/${made.body.result.id as string}`);
    expect((await accounts({ cookie })).status).toBe(401);
  });

  it("a session ends when its token expires, and after a week at the latest", async () => {
    const token = await server.token(["tags.read"], { expires_at: new Date(now + 60_000).toISOString() });
    const ofToken = await logIn(token);
    const ofRoot = await logIn();
    now += 60_000;
    expect((await accounts({ cookie: ofToken })).status).toBe(401);
    expect((await accounts({ cookie: ofRoot })).status).toBe(200);
    now += 7 * 24 * 3_600_000;
    expect((await accounts({ cookie: ofRoot })).status).toBe(401);
  });

  it("a logout ends the session on the server", async () => {
    const cookie = await logIn();
    const answer = await raw("DELETE", "/dashboard/session", { cookie, ...origin() });
    expect(setCookieOf(answer)).toContain("Max-Age=0");
    expect((await accounts({ cookie })).status).toBe(401);
  });

  it("a session does not apply to a request with its own credential", async () => {
    const cookie = await logIn();
    expect((await accounts({ cookie, authorization: "Bearer wrong" })).status).toBe(401);
  });

  it("new sessions of a token replace its oldest, and never those of other tokens", async () => {
    const root = await logIn();
    const token = await server.token(["tags.read"]);
    const first = await logIn(token);
    for (let i = 0; i < 49; i++) await logIn(token);
    expect((await accounts({ cookie: first })).status).toBe(200);
    const newest = await logIn(token);
    expect((await accounts({ cookie: first })).status).toBe(401);
    expect((await accounts({ cookie: newest })).status).toBe(200);
    expect((await accounts({ cookie: root })).status).toBe(200);
  });

  it("a session survives a restart, and only its hash is stored", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "signalbox-sessions-"));
    const before = await startTestServer({ dataDir });
    const login = await fetch(`${before.url}/dashboard/session`, {
      method: "POST",
      headers: { origin: before.url },
      body: JSON.stringify({ token: ROOT_TOKEN }),
    });
    const cookie = login.headers.getSetCookie()[0]?.split(";")[0] ?? "";
    await before.stop();
    const stored = await readFile(join(dataDir, "signalbox.db"));
    expect(stored.includes(cookie.split("=")[1] ?? "?")).toBe(false);
    const after = await startTestServer({ dataDir });
    expect((await fetch(`${after.url}/accounts`, { headers: { cookie } })).status).toBe(200);
    await after.stop();
    await rm(dataDir, { recursive: true, force: true });
  });
});

describe("a request with the session's cookie", () => {
  const change = (headers: Record<string, string>) =>
    raw(
      "POST",
      "/accounts/default/tokens",
      { "content-type": "application/json", ...headers },
      '{"name":"x","permissions":["tags.read"]}',
    );

  it("a request from the dashboard's own page may make changes", async () => {
    const cookie = await logIn();
    expect((await change({ cookie, ...origin() })).status).toBe(200);
    expect((await change({ cookie, "sec-fetch-site": "same-origin" })).status).toBe(200);
  });

  it.each([
    ["another site", { origin: "https://evil.example" }],
    ["another port of the same host", { origin: "http://127.0.0.1:1" }],
    ["an opaque origin", { origin: "null" }],
    ["an unknown origin", {}],
    ["a page of the same site without an origin", { "sec-fetch-site": "same-site" }],
  ])("a request from %s may make no change", async (_, headers) => {
    const cookie = await logIn();
    const answer = await change({ cookie, ...headers });
    expect(answer.status).toBe(403);
    expect(JSON.parse(answer.body).errors[0].code).toBe(10003);
  });

  it("a page of another origin reads nothing", async () => {
    const cookie = await logIn();
    expect((await accounts({ cookie, "sec-fetch-site": "cross-site" })).status).toBe(403);
    expect((await accounts({ cookie, "sec-fetch-site": "same-origin" })).status).toBe(200);
  });

  it("a Host that is not this server's is refused, which prevents DNS rebinding", async () => {
    const cookie = await logIn();
    const answer = await accounts({ cookie, host: "rebound.example" });
    expect(answer.status).toBe(403);
    expect(answer.body).toContain("dashboard.allowedHosts");
    expect((await accounts({ cookie, host: "box.example.com" })).status).toBe(200);
    expect((await accounts({ cookie, host: "localhost:8787" })).status).toBe(200);
    expect((await accounts({ cookie, host: "[::1]:8787" })).status).toBe(200);
  });

  it("only the dashboard's own page may open an agent's WebSocket", async () => {
    const cookie = await logIn();
    /** The first event from the server: a frame or the close code. */
    const greeting = (headers: Record<string, string>) =>
      new Promise<string | number>((resolve, reject) => {
        const socket = new WebSocket(`${server.url.replace("http", "ws")}/agents/webhook-agent/box`, {
          headers: { cookie, ...headers },
        });
        socket.once("message", (text) => {
          resolve((JSON.parse((text as Buffer).toString()) as { type: string }).type);
          socket.close();
        });
        socket.once("close", resolve);
        socket.once("error", reject);
      });
    expect(await greeting({ origin: server.url })).toBe("cf_agent_identity");
    expect(await greeting({ origin: "https://evil.example" })).toBe(4403);
    expect(await greeting({})).toBe(4403);
  });
});

describe("the dashboard's files", () => {
  it("the dashboard's files exist: the installation built them", () => {
    expect(existsSync(new URL("../../packages/dashboard/dist/index.html", import.meta.url))).toBe(true);
  });

  it("responses carry a strict Content-Security-Policy and the other security headers", async () => {
    const { headers, status, body } = await raw("GET", "/dashboard/accounts/default/tags");
    expect(status).toBe(200);
    expect(body).toContain("<title>Signalbox</title>");
    const policy = String(headers["content-security-policy"]);
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain("unsafe");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(headers["x-content-type-options"]).toBe("nosniff");
    expect(headers["referrer-policy"]).toBe("no-referrer");
    expect(headers["cache-control"]).toBe("no-cache");
    expect(body).not.toMatch(/<script>|<style|style=|https?:\/\//);
  });

  it("files are compressed and cached for a year if their name contains a hash; the first load is at most 150 KB", async () => {
    const page = await raw("GET", "/dashboard/");
    const assets = [...page.body.matchAll(/\/dashboard\/assets\/[\w.-]+/g)].map(([path]) => path);
    expect(assets.length).toBeGreaterThan(1);
    let bytes = page.body.length;
    for (const path of assets) {
      const answer = await raw("HEAD", path, { "accept-encoding": "gzip, br" });
      expect(answer.status).toBe(200);
      expect(answer.headers["content-encoding"]).toBe("br");
      expect(answer.headers["cache-control"]).toBe("public, max-age=31536000, immutable");
      bytes += Number(answer.headers["content-length"]);
    }
    expect(bytes).toBeLessThan(150 * 1024);
    const script = assets.find((path) => path.endsWith(".js")) ?? "";
    const gzip = await raw("HEAD", script, { "accept-encoding": "br;q=0, gzip" });
    expect(gzip.headers["content-encoding"]).toBe("gzip");
    expect((await raw("HEAD", script)).headers["content-encoding"]).toBeUndefined();
  });

  it("a cached file is answered 304, an unknown asset 404 and other methods 405", async () => {
    const { headers } = await raw("GET", "/dashboard/");
    const again = await raw("GET", "/dashboard/", { "if-none-match": String(headers["etag"]) });
    expect(again.status).toBe(304);
    expect((await raw("GET", "/dashboard/assets/none.js")).status).toBe(404);
    expect((await raw("GET", "/dashboard/assets/..%2f..%2fpackage.json")).status).toBe(404);
    expect((await raw("POST", "/dashboard/")).status).toBe(405);
  });
});

describe("the first commands", () => {
  it("the first commands equal those of the terminal, with the address that the browser used", async () => {
    const cookie = await logIn();
    const answer = await raw("GET", "/dashboard/first-commands", { cookie });
    const commands = JSON.parse(answer.body).result as { card: string; command: string }[];
    expect(commands.map(({ command }) => command)).toEqual(
      server.service.firstCommands.map(({ command }) => command),
    );
    expect(new Set(commands.map(({ card }) => card))).toContain("gateway");
    const elsewhere = await raw("GET", "/dashboard/first-commands", {
      cookie,
      host: "box.example.com",
      "x-forwarded-proto": "https",
    });
    expect(elsewhere.body).toContain("https://box.example.com/v1/");
  });

  it("the first commands need a login, and only root sees the path of the data folder", async () => {
    expect((await raw("GET", "/dashboard/first-commands")).status).toBe(401);
    const read = async (token?: string) =>
      (await raw("GET", "/dashboard/first-commands", { cookie: await logIn(token) })).body;
    expect(await read()).toContain(server.dataDir);
    expect(await read(await server.token(["tags.read"]))).not.toContain(server.dataDir);
  });
});
