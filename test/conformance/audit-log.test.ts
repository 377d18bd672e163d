/** The audit log: what is recorded of management writes, how it is listed and exported, and how its chain shows tampering. */
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import Cloudflare from "cloudflare";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkChain } from "../../packages/signalbox/src/cli/audit-chain.ts";
import { runCommand } from "../support/run-cli.ts";
import { type TestServer, ROOT_TOKEN, startTestServer } from "../support/test-server.ts";

interface Entry {
  readonly seq: number;
  readonly id: string;
  readonly when: string;
  readonly action: {
    type: string;
    result: boolean;
    outcome: string;
    status: number;
    code: number | null;
    message: string | null;
  };
  readonly actor: { type: string; id: string; name: string; session: string | null; ip: string | null };
  readonly operation: string;
  readonly resource: { type: string; id: string; path: string };
  readonly request_id: string;
  readonly request: unknown;
  readonly before: Record<string, unknown> | null;
  readonly after: Record<string, unknown> | null;
  readonly previous_hash: string;
  readonly hash: string;
}

const LOG = "/accounts/default/audit_logs";
const GATEWAYS = "/accounts/default/ai-gateway/gateways";
const KEY = "sk-proj-abcdefghijklmnop0123456789";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

async function entries(query = "", path = LOG): Promise<Entry[]> {
  const { status, body } = await server.api("GET", `${path}?limit=1000&${query}`);
  expect(status).toBe(200);
  return body.result;
}

async function newest(query = "", path = LOG): Promise<Entry> {
  const [entry] = await entries(query, path);
  if (entry === undefined) throw new Error(`no entry for ${query}`);
  return entry;
}

describe("an entry", () => {
  it("contains actor, address, request, operation, resource, and the state before and after a change", async () => {
    await server.api("POST", GATEWAYS, { id: "g1" });
    const { body } = await server.api("POST", "/accounts/default/tokens", {
      name: "editor",
      permissions: ["gateway.edit"],
    });
    const { id, token } = body.result as { id: string; token: string };
    const response = await fetch(`${server.url}${GATEWAYS}/g1`, {
      method: "PUT",
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        "x-request-id": "change-1",
        "user-agent": "test/1",
      },
      body: JSON.stringify({ cache_ttl: 60 }),
    });
    expect(response.status).toBe(200);
    const entry = await newest("request_id=change-1");
    expect(entry).toMatchObject({
      action: { type: "update", result: true, outcome: "success", status: 200, code: null },
      actor: { type: "token", id, name: "editor", ip: "127.0.0.1" },
      operation: "PUT /accounts/{account_id}/ai-gateway/gateways/{gateway_id}",
      resource: { type: "gateways", id: "g1", path: `${GATEWAYS}/g1` },
      metadata: { user_agent: "test/1" },
      request: { cache_ttl: 60 },
      before: { id: "g1", cache_ttl: null },
      after: { id: "g1", cache_ttl: 60 },
    });
    expect(Math.abs(Date.parse(entry.when) - Date.now())).toBeLessThan(3_600_000);
  });

  it("names the created resource, and keeps the deleted one", async () => {
    await server.api("POST", GATEWAYS, { id: "g2" });
    expect(await newest("action=create&resource_id=g2")).toMatchObject({ before: null, after: { id: "g2" } });
    await server.api("DELETE", `${GATEWAYS}/g2`);
    expect(await newest("action=delete&resource_id=g2")).toMatchObject({ before: { id: "g2" }, after: null });
  });

  it("contains the tags of a resource before and after, and one bulk request is one entry", async () => {
    const tags = "/accounts/default/tags";
    const resource = { resource_type: "worker", resource_id: "w1" };
    await server.api("PUT", tags, { ...resource, tags: { env: "a" } });
    await server.api("PATCH", tags, { ...resource, tags: { env: "b" } });
    await server.api("DELETE", tags, resource);
    const found = (await entries("resource_type=tags&resource_id=worker/w1")).toReversed();
    expect(found.map(({ before, after }) => [before?.["tags"], after?.["tags"]])).toEqual([
      [undefined, { env: "a" }],
      [{ env: "a" }, { env: "b" }],
      [{ env: "b" }, undefined],
    ]);
    const items = [1, 2, 3].map((i) => ({
      resource_type: "worker",
      resource_id: `b${i}`,
      tags: { n: `${i}` },
    }));
    await server.api("POST", `${tags}/bulk`, { items });
    const bulk = await entries("action=bulk");
    expect(bulk).toHaveLength(1);
    expect(bulk[0]).toMatchObject({ request: { items }, after: { count: 3, succeeded: 3, failed: 0 } });
  });

  it("is written for a refused write, with its reason", async () => {
    const reader = await server.token(["gateway.read"]);
    const { status } = await server.api("DELETE", `${GATEWAYS}/default`, undefined, reader);
    expect(status).toBe(403);
    expect(await newest("outcome=refused&action=delete")).toMatchObject({
      action: { result: false, status: 403, code: 10003, message: "Permission denied" },
      actor: { type: "token" },
      resource: { id: "default" },
      after: null,
    });
    await server.api("PUT", `${GATEWAYS}/default`, { cache_ttl: "long" });
    expect(await newest("outcome=refused&action=update")).toMatchObject({
      action: { status: 400, code: 7002 },
      request: { cache_ttl: "long" },
    });
    await server.api("POST", GATEWAYS, { id: "default" });
    expect(await newest("outcome=refused&action=create")).toMatchObject({ action: { status: 409 } });
    await server.api("POST", GATEWAYS, { id: "x" }, "sbx_wrong");
    expect(await newest("", "/audit_logs")).toMatchObject({
      action: { status: 401, outcome: "refused" },
      actor: { type: "anonymous" },
    });
  });

  it("belongs to the account that was written, or to none", async () => {
    await server.api("POST", "/accounts", { id: "second" });
    expect(await newest("resource_id=second", "/audit_logs")).toMatchObject({ operation: "POST /accounts" });
    await server.api("POST", "/accounts/second/ai-gateway/gateways", { id: "theirs" });
    expect(await entries("resource_id=theirs")).toEqual([]);
    expect(await entries("resource_id=theirs", "/accounts/second/audit_logs")).toHaveLength(1);
  });

  it("of a request that only reads has no result: what it showed is data of its caller", async () => {
    const call = await fetch(`${server.url}/v1/default/default/echo/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"model":"echo","messages":[{"role":"user","content":"words-of-a-user"}]}',
    });
    await call.arrayBuffer();
    const id = call.headers.get("gw-aig-log-id") ?? "";
    const replay = await server.api("POST", `${GATEWAYS}/default/logs/${id}/replay`, {});
    expect(JSON.stringify(replay.body.result)).toContain("words-of-a-user");
    const replayed = await newest("action=replay");
    expect(replayed).toMatchObject({ action: { result: true }, resource: { type: "logs", id }, after: null });
    const instance = "/accounts/default/agents/webhook-agent/instances/audited";
    await server.api("POST", "/agents/webhook-agent/audited/rpc/getEvents", [1]);
    const sql = "SELECT 40 + 2 AS found";
    const { body } = await server.api("POST", `${instance}/sql`, { sql });
    expect(body.result).toMatchObject({ rows: [{ found: 42 }] });
    const queried = await newest("action=sql");
    expect(queried).toMatchObject({
      resource: { id: "audited" },
      request: { sql },
      before: null,
      after: null,
    });
    expect(JSON.stringify([replayed, queried])).not.toMatch(/words-of-a-user|"found":/);
  });

  it("says that a browser session was used", async () => {
    const login = await fetch(await server.service.createLoginLink(), { redirect: "manual" });
    const cookie = (login.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    const response = await fetch(`${server.url}${GATEWAYS}`, {
      method: "POST",
      headers: { cookie, origin: server.url, "content-type": "application/json" },
      body: JSON.stringify({ id: "by-session" }),
    });
    expect(response.status).toBe(200);
    const { actor } = await newest("resource_id=by-session");
    expect(actor).toMatchObject({ type: "root" });
    expect(actor.session).toMatch(/^\w{12}$/);
  });
});

describe("secrets", () => {
  it("are in no entry: tokens, provider keys, secret headers, login codes, keys in error texts", async () => {
    const { body } = await server.api("POST", "/accounts/default/tokens", {
      name: "shown once",
      permissions: ["gateway.run"],
    });
    const { id, token } = body.result as { id: string; token: string };
    const rotated = await server.api("POST", `/accounts/default/tokens/${id}/rotate`, {});
    const next = (rotated.body.result as { token: string }).token;
    await server.api("POST", `${GATEWAYS}/default/provider_configs`, {
      alias: "a",
      default_config: false,
      provider_slug: "openai",
      secret: KEY,
    });
    await server.api("POST", `${GATEWAYS}/default/provider_configs`, {
      alias: "b",
      default_config: false,
      provider_slug: "nobody",
      secret: "plain-secret-value",
    });
    await server.api("POST", "/accounts/default/ai-gateway/custom-providers", {
      name: "p",
      slug: "p",
      base_url: "https://provider.example",
      headers: { "x-api-key": "header-secret-value" },
    });
    const link = (await server.api("POST", "/login-links")).body.result as { path: string };
    const code = new URL(link.path, server.url).searchParams.get("code") ?? "";
    expect(code).not.toBe("");
    await server.api("POST", GATEWAYS, { id: `x ${KEY}`, [`sbx_${"a".repeat(46)}`]: 1 });
    const all = JSON.stringify([await entries(), await entries("", "/audit_logs")]);
    const secrets = [
      token,
      next,
      KEY,
      "plain-secret-value",
      "header-secret-value",
      code,
      ROOT_TOKEN,
      "sbx_aaaaa",
    ];
    expect(secrets.filter((secret) => all.includes(secret))).toEqual([]);
    expect(all).toContain("[hidden]");
  });
});

describe("reading", () => {
  it("filters, pages in both directions, and refuses what it does not know", async () => {
    const all = await entries();
    expect(all.length).toBeGreaterThan(15);
    const pages: Entry[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const { body } = await server.api(
        "GET",
        `${LOG}?limit=7&direction=asc${cursor && `&cursor=${cursor}`}`,
      );
      pages.push(...(body.result as unknown as Entry[]));
      cursor = (body.result_info as { cursor: string | null }).cursor;
    }
    expect(pages).toEqual(all.toReversed());
    expect(await entries("actor=root&outcome=success")).toEqual(
      all.filter(({ actor, action }) => actor.type === "root" && action.result),
    );
    const middle = all[5]?.when ?? "";
    expect(await entries(`before=${middle}`)).toEqual(all.filter(({ when }) => when < middle));
    expect(await entries(`since=${middle}`)).toEqual(all.filter(({ when }) => when >= middle));
    for (const bad of [
      "since=yesterday",
      "cursor=x",
      "limit=0",
      "actr=root",
      `since=${middle}&before=${middle}`,
    ]) {
      expect((await server.api("GET", `${LOG}?${bad}`)).status, bad).toBe(400);
    }
  });

  it("exports NDJSON whose chain can be recomputed, and CSV", async () => {
    const text = await (await download("ndjson")).text();
    const lines = text.trimEnd().split("\n");
    expect(lines.length).toBe((await entries()).length);
    let previous = "0".repeat(64);
    for (const [i, line] of lines.entries()) {
      const entry = JSON.parse(line) as Entry;
      expect(entry.seq).toBe(i + 1);
      expect(entry.previous_hash).toBe(previous);
      const hashed = `${line.slice(0, line.lastIndexOf(',"hash":"'))}}`;
      expect(entry.hash).toBe(createHash("sha256").update(hashed).digest("hex"));
      previous = entry.hash;
    }
    const csv = await download("csv");
    expect(csv.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    const [head = "", first = ""] = (await csv.text()).split("\r\n");
    expect(head.split(",").slice(0, 5)).toEqual(["seq", "id", "when", "account_id", "action"]);
    expect(first.startsWith("1,")).toBe(true);
  });

  it("the command line lists, exports and verifies it", async () => {
    const listed = await runCommand(server, ["audit", "list", "--outcome", "refused", "--limit", "5"]);
    expect(listed.out).toContain("refused");
    expect(listed.out.trimEnd().split("\n")).toHaveLength(6);
    const exported = await runCommand(server, ["audit", "export", "--format", "csv", "--service"]);
    expect(exported.out).toContain("POST /accounts");
    const { hash } = await newest();
    expect((await runCommand(server, ["audit", "verify", "--head", hash])).code).toBe(0);
    const wrong = await runCommand(server, ["audit", "verify", "--head", "0".repeat(64)]);
    expect([wrong.code, wrong.out]).toEqual([1, expect.stringContaining("no entry has the hash") as string]);
  });

  it("a changed or removed row is noticed", async () => {
    const lines = (await (await download("ndjson")).text()).trimEnd().split("\n");
    const problemOf = async (some: string[]) => (await checkChain(some, undefined)).problem;
    expect(await problemOf(lines)).toBeNull();
    expect(await problemOf(lines.slice(3))).toBeNull();
    expect(await problemOf(lines.toSpliced(4, 1))).toContain("entry 5 is missing");
    expect(await problemOf(lines.with(4, (lines[4] ?? "").replace("127.0.0.1", "127.0.0.2")))).toContain(
      "was changed",
    );
    expect(await problemOf([...lines.slice(0, 3), "{}"])).toContain("not an entry");
  });

  it("the public SDK lists it", async () => {
    const client = new Cloudflare({ apiToken: ROOT_TOKEN, baseURL: server.url });
    const { result } = await client.auditLogs.list({ account_id: "default" });
    expect(result[0]).toMatchObject({
      action: { result: expect.any(Boolean) as boolean },
      actor: { ip: "127.0.0.1" },
    });
  });

  function download(format: string): Promise<Response> {
    return fetch(`${server.url}${LOG}/export?format=${format}`, {
      headers: { authorization: `Bearer ${ROOT_TOKEN}` },
    });
  }
});

describe("access", () => {
  it("needs its own permission, in the own account, and is closed to tokens of a gateway", async () => {
    const auditor = await server.token(["audit.read"]);
    expect((await server.api("GET", LOG, undefined, auditor)).status).toBe(200);
    expect((await server.api("GET", `${LOG}/export`, undefined, auditor)).status).toBe(200);
    const other = await server.token(["gateway.edit", "tokens.edit", "tags.edit"]);
    expect((await server.api("GET", LOG, undefined, other)).status).toBe(403);
    await server.api("POST", "/accounts", { id: "wall" });
    const foreign = await server.token(["audit.read", "gateway.edit"], { account: "wall" });
    expect((await server.api("GET", LOG, undefined, foreign)).status).toBe(403);
    expect((await server.api("GET", "/audit_logs", undefined, auditor)).status).toBe(403);
    // What a foreign token tried is in its own account, not in the one it tried to change.
    await server.api("DELETE", `${GATEWAYS}/default`, undefined, foreign);
    expect(await newest("outcome=refused", "/accounts/wall/audit_logs")).toMatchObject({
      resource: { path: `${GATEWAYS}/default` },
    });
    expect(JSON.stringify(await entries())).not.toContain(JSON.stringify("wall"));
    const bound = await server.api("POST", "/accounts/default/tokens", {
      name: "b",
      permissions: ["audit.read"],
      gateway_id: "default",
    });
    if (bound.status === 200) {
      const { token } = bound.body.result as { token: string };
      expect((await server.api("GET", LOG, undefined, token)).status).toBe(403);
    }
    for (const method of ["DELETE", "PUT", "PATCH", "POST"]) {
      expect((await server.api(method, LOG)).status, method).toBe(405);
    }
  });
});

describe("durability", () => {
  it("the entry of a change is committed with it: a claim that a crash left becomes an entry", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "signalbox-audit-"));
    const first = await startTestServer({ dataDir });
    await first.api("POST", GATEWAYS, { id: "kept" });
    await first.stop();
    const database = new DatabaseSync(join(dataDir, "signalbox.db"));
    // What a kill between the commit of a change and its answer leaves.
    database.exec(`INSERT INTO audit_claim (id, account_id, at, facts) VALUES ('claim1', 'default', ${Date.now()},
      '${JSON.stringify({ request: null, before: null, facts: { accountId: "default", requestId: "lost", actor: { type: "root", id: "", name: "root", session: null, ip: null }, action: "delete", operation: "DELETE x", resourceType: "gateways", resourceId: "gone", path: "/x", userAgent: null, forwardedFor: null } })}')`);
    database.close();
    const second = await startTestServer({ dataDir });
    try {
      const { body } = await second.api("GET", `${LOG}?request_id=lost`);
      expect(body.result).toMatchObject([{ id: "claim1", action: { outcome: "unknown", result: false } }]);
    } finally {
      await second.stop();
      await rm(dataDir, { recursive: true, force: true });
    }
  });
});
