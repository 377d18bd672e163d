/**
 * Contract section 2.1 and decisions, section 4 (management): gateways through the API, the public SDK and the
 * command line.
 */
import Cloudflare from "cloudflare";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sendJson, startProvider } from "../peers/provider.ts";
import { callPath, post, readLogs, send } from "../support/gateway.ts";
import { runCommand } from "../support/run-cli.ts";
import { runCliProcess } from "../support/server-process.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

const GATEWAYS = "/accounts/default/ai-gateway/gateways";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

describe("the management API", () => {
  it("after the first start the gateway `default` has authentication off and logs on", async () => {
    const { body } = await server.api("GET", `${GATEWAYS}/default`);
    expect(body.result).toMatchObject({
      id: "default",
      is_default: true,
      authentication: false,
      collect_logs: true,
      cache_ttl: null,
      rate_limiting_limit: null,
    });
  });

  it("gateways are created, read, listed, updated and deleted", async () => {
    const made = await server.api("POST", GATEWAYS, { id: "team-a", authentication: true, cache_ttl: 60 });
    expect(made.status).toBe(200);
    expect(made.body.result).toMatchObject({
      id: "team-a",
      authentication: true,
      cache_ttl: 60,
      is_default: false,
    });
    const listed = await server.api("GET", `${GATEWAYS}?search=team&page=1&per_page=1`);
    expect(listed.body).toMatchObject({
      result: [{ id: "team-a" }],
      result_info: { page: 1, per_page: 1, count: 1, total_count: 1 },
    });
    const updated = await server.api("PUT", `${GATEWAYS}/team-a`, { cache_ttl: null });
    expect(updated.body.result).toMatchObject({ authentication: true, cache_ttl: null });
    expect((await server.api("DELETE", `${GATEWAYS}/team-a`)).body.result).toMatchObject({ id: "team-a" });
    expect((await server.api("GET", `${GATEWAYS}/team-a`)).status).toBe(404);
    const call = await post(server, "echo/chat/completions", { gateway: "team-a" });
    expect(call.status).toBe(400);
    expect(JSON.parse(call.body)).toMatchObject({ internalCode: 2001 });
  });

  it("a deleted gateway takes its tokens and logs with it, and a new gateway of the same name is empty", async () => {
    await server.api("POST", GATEWAYS, { id: "short-lived", authentication: true });
    const made = await server.api("POST", `${GATEWAYS}/short-lived/tokens`, {});
    const { token, id } = made.body.result as { token: string; id: string };
    const headers = { "gw-aig-authorization": `Bearer ${token}` };
    expect((await post(server, "echo/chat/completions", { gateway: "short-lived", headers })).status).toBe(
      200,
    );
    expect(await readLogs(server, "short-lived")).toHaveLength(1);
    await server.api("DELETE", `${GATEWAYS}/short-lived`);
    expect((await server.api("GET", `/accounts/default/tokens/${id}`)).status).toBe(404);
    await server.api("POST", GATEWAYS, { id: "short-lived", authentication: true });
    expect(await readLogs(server, "short-lived")).toHaveLength(0);
    expect((await post(server, "echo/chat/completions", { gateway: "short-lived", headers })).status).toBe(
      401,
    );
  });

  it("a call that ends after the deletion of its gateway leaves no row", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const provider = await startProvider(async (_, response) => {
      await released;
      sendJson(response, 200, {});
    });
    const own = await startTestServer({ file: { providers: { openai: { baseUrl: provider.url } } } });
    await own.api("POST", GATEWAYS, { id: "left" });
    const call = post(own, "openai/chat/completions", { gateway: "left" });
    await expect.poll(() => provider.requests.length).toBe(1);
    await own.api("DELETE", `${GATEWAYS}/left`);
    release();
    expect((await call).status).toBe(200);
    await own.api("POST", GATEWAYS, { id: "left" });
    expect(await readLogs(own, "left")).toEqual([]);
    await own.stop();
    await provider.close();
  });

  it.each([
    ["id", { id: "has space" }],
    ["id", { id: "" }],
    ["id", { id: "x".repeat(65) }],
    ["authentication", { id: "x", authentication: "yes" }],
    ["cache_ttl", { id: "x", cache_ttl: -1 }],
    ["rate_limiting_technique", { id: "x", rate_limiting_technique: "leaky" }],
    ["retry_max_attempts", { id: "x", retry_max_attempts: 6 }],
    ["retry_delay", { id: "x", retry_delay: 60_001 }],
    ["log_management", { id: "x", log_management: 0 }],
    ["spend_limits", { id: "x", spend_limits: { rules: [{ limitType: "cost", limit: -1, window: 60 }] } }],
    ["guardrails", { id: "x", guardrails: { prompt: { S14: "BLOCK" }, response: {} } }],
    ["zdr", { id: "x", zdr: true }],
    ["nonsense", { id: "x", nonsense: true }],
  ])("an invalid %s is refused by name", async (name, body) => {
    const answer = await server.api("POST", GATEWAYS, body);
    expect(answer.status).toBe(400);
    expect(JSON.stringify(answer.body.errors)).toContain(name);
  });

  it("a second gateway with the same id is refused with 409, a rename with 400", async () => {
    expect((await server.api("POST", GATEWAYS, { id: "default" })).status).toBe(409);
    expect((await server.api("PUT", `${GATEWAYS}/default`, { id: "renamed" })).status).toBe(400);
  });

  it("reads need gateway.read, writes gateway.edit", async () => {
    const reader = await server.token(["gateway.read"]);
    const runner = await server.token(["gateway.run"]);
    expect((await server.api("GET", GATEWAYS, undefined, reader)).status).toBe(200);
    expect((await server.api("PUT", `${GATEWAYS}/default`, {}, reader)).status).toBe(403);
    expect((await server.api("POST", `${GATEWAYS}/default/tokens`, {}, reader)).status).toBe(403);
    expect((await server.api("GET", GATEWAYS, undefined, runner)).status).toBe(403);
    expect((await server.api("GET", GATEWAYS, undefined, null)).status).toBe(401);
  });

  it("the result of a read can be written back, with changes", async () => {
    const path = `${GATEWAYS}/written-back`;
    const rule = { limitType: "cost", limit: 5, window: 60, metadata: { user: { mode: "partition" } } };
    await server.api("POST", GATEWAYS, {
      id: "written-back",
      authentication: true,
      cache_ttl: 60,
      spend_limits: { rules: [rule] },
    });
    const read = (await server.api("GET", path)).body.result as Record<string, unknown>;
    const same = await server.api("PUT", path, read);
    expect(same.status).toBe(200);
    expect(same.body.result).toEqual({ ...read, modified_at: same.body.result.modified_at });
    const changed = await server.api("PUT", path, {
      ...read,
      cache_ttl: 5,
      created_at: "2001-01-01T00:00:00Z",
    });
    expect(changed.body.result).toEqual({
      ...read,
      cache_ttl: 5,
      modified_at: changed.body.result.modified_at,
    });
    const misspelt = await server.api("PUT", path, { ...read, cachettl: 5 });
    expect(misspelt.status).toBe(400);
    expect(misspelt.body.errors[0].message).toContain("cachettl");
    await server.api("DELETE", path);
  });

  it("the URL of a gateway is the configured one, or else the one of the request", async () => {
    const path = `${GATEWAYS}/default/url/openai`;
    const headers = { authorization: `Bearer ${ROOT_TOKEN}` };
    const read = async (of: TestServer, more: Record<string, string> = {}) =>
      (
        JSON.parse((await send(of, "GET", path, { headers: { ...headers, ...more } })).body) as {
          result: string;
        }
      ).result;
    const named = await startTestServer({ file: { dashboard: { allowedHosts: ["ai.example.com"] } } });
    expect(await read(named, { host: "ai.example.com" })).toBe(
      "http://ai.example.com/v1/default/default/openai",
    );
    expect(await read(named, { host: "ai.example.com", "x-forwarded-proto": "https" })).toBe(
      "https://ai.example.com/v1/default/default/openai",
    );
    // An unknown Host is not repeated.
    expect(await read(named, { host: "evil.example" })).toBe(`${named.url}/v1/default/default/openai`);
    await named.stop();
    const configured = await startTestServer({
      file: { listener: { publicUrl: "https://ai.example.com/" } },
    });
    expect(await read(configured)).toBe("https://ai.example.com/v1/default/default/openai");
    const commands = configured.service.firstCommands.map(({ command }) => command).join("\n");
    expect(commands).toContain("https://ai.example.com/");
    expect(commands).not.toContain(configured.url);
    await configured.stop();
  });

  it("a deleted default gateway is not created again at the next start, even if it was the last gateway", async () => {
    const first = await startTestServer();
    expect((await first.api("DELETE", `${GATEWAYS}/default`)).status).toBe(200);
    await first.service.stop();
    const second = await startTestServer({ dataDir: first.dataDir });
    expect((await second.api("GET", GATEWAYS)).body.result).toEqual([]);
    const call = await post(second, "echo/chat/completions");
    expect(JSON.parse(call.body)).toMatchObject({ internalCode: 2001 });
    await second.stop();
    await first.stop();
  });

  it("settings survive a restart, and a deleted default gateway is not created again", async () => {
    const first = await startTestServer();
    const { dataDir } = first;
    await first.api("PUT", `${GATEWAYS}/default`, { authentication: true });
    await first.service.stop();
    const second = await startTestServer({ dataDir });
    expect((await post(second, "echo/chat/completions")).status).toBe(401);
    await second.api("POST", GATEWAYS, { id: "other" });
    await second.api("DELETE", `${GATEWAYS}/default`);
    await second.stop();
    const third = await startTestServer({ dataDir });
    expect((await third.api("GET", GATEWAYS)).body.result).toMatchObject([{ id: "other" }]);
    await third.stop();
    await first.stop();
  });
});

describe("the cloudflare SDK", () => {
  const client = () =>
    new Cloudflare({ apiToken: ROOT_TOKEN, baseURL: `${server.url}/client/v4`, maxRetries: 0 });
  const account_id = "default";
  const required = {
    cache_invalidate_on_update: true,
    cache_ttl: 0,
    collect_logs: true,
    rate_limiting_interval: 0,
    rate_limiting_limit: 0,
  };

  it("the aiGateway resource works", async () => {
    const { aiGateway } = client();
    const made = await aiGateway.create({ account_id, id: "sdk", ...required, authentication: false });
    expect(made).toMatchObject({ id: "sdk", ...required });
    const ids: string[] = [];
    for await (const gateway of aiGateway.list({ account_id, per_page: 1 })) ids.push(gateway.id);
    expect(ids).toContain("sdk");
    const updated = await aiGateway.update("sdk", {
      account_id,
      ...required,
      authentication: true,
      logpush: false,
      rate_limiting_technique: "sliding",
      retry_max_attempts: 3,
    });
    expect(updated).toMatchObject({
      authentication: true,
      rate_limiting_technique: "sliding",
      retry_max_attempts: 3,
    });
    expect((await aiGateway.get("sdk", { account_id })).authentication).toBe(true);
    const url = await aiGateway.urls.get("openai", { account_id, gateway_id: "sdk" });
    expect(url).toBe(`${server.url}/v1/default/sdk/openai`);
    expect((await aiGateway.delete("sdk", { account_id })).id).toBe("sdk");
    await expect(aiGateway.get("sdk", { account_id })).rejects.toMatchObject({ status: 404 });
  });

  it("the custom provider and provider config resources work", async () => {
    const { customProviders, providerConfigs } = client().aiGateway;
    const made = await customProviders.create({
      account_id,
      name: "Mine",
      slug: "sdk-mine",
      base_url: "https://example.com",
    });
    expect(await customProviders.get(made.id, { account_id })).toMatchObject({ slug: "sdk-mine" });
    const slugs: string[] = [];
    for await (const provider of customProviders.list({ account_id })) slugs.push(provider.slug);
    expect(slugs).toEqual(["sdk-mine"]);
    expect((await customProviders.delete(made.id, { account_id })).id).toBe(made.id);
    const config = await providerConfigs.create("default", {
      account_id,
      alias: "team",
      default_config: false,
      provider_slug: "openai",
      secret_id: "OPENAI_API_KEY_TEAM",
    });
    expect(config).toMatchObject({ alias: "team", secret_preview: "$OPENAI_API_KEY_TEAM" });
    const aliases: string[] = [];
    for await (const one of providerConfigs.list("default", { account_id })) aliases.push(one.alias);
    expect(aliases).toEqual(["team"]);
  });

  it("a key may not refer to another secret of the process", async () => {
    for (const secret_id of ["SIGNALBOX_ROOT_TOKEN", "ANTHROPIC_API_KEY", "OPENAI_API_KEYS"]) {
      const creation = client().aiGateway.providerConfigs.create("default", {
        account_id,
        alias: "x",
        default_config: false,
        provider_slug: "openai",
        secret_id,
      });
      await expect(creation).rejects.toMatchObject({ status: 400 });
    }
  });
});

describe("the command line", () => {
  const cli = (...args: string[]) => runCommand(server, ["gateway", ...args, "--json"]);
  const result = async (...args: string[]) => {
    const { code, out, err } = await cli(...args);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    return JSON.parse(out) as Record<string, unknown>;
  };

  it("a gateway is created, authentication is switched, a token is created and works, the gateway is deleted", async () => {
    expect(await result("create", "cli")).toMatchObject({ id: "cli", authentication: false });
    expect(await result("set", "cli", "--authentication", "on")).toMatchObject({ authentication: true });
    expect((await post(server, "echo/chat/completions", { gateway: "cli" })).status).toBe(401);
    const { token } = await result("token", "cli", "--name", "from the shell");
    const headers = { "gw-aig-authorization": `Bearer ${String(token)}` };
    expect((await post(server, "echo/chat/completions", { gateway: "cli", headers })).status).toBe(200);
    expect(await result("set", "cli", "--authentication", "off", "--cache-ttl", "60")).toMatchObject({
      authentication: false,
      cache_ttl: 60,
    });
    expect((await post(server, "echo/chat/completions", { gateway: "cli" })).status).toBe(200);
    expect(await result("show", "cli")).toMatchObject({ id: "cli", cache_ttl: 60 });
    const plain = await runCliProcess(["gateway", "list", "--url", server.url, "--token", ROOT_TOKEN]);
    expect(plain.stdout).toMatch(/^ID .*AUTHENTICATION[^]*cli +off +on +60 s/m);
    expect(await result("delete", "cli")).toMatchObject({ id: "cli" });
  });

  it("an invalid option is explained", async () => {
    const { code, err } = await cli("set", "default", "--authentication", "maybe");
    const message = '--authentication: expected on or off, found "maybe"';
    expect([code, JSON.parse(err)]).toMatchObject([2, { errors: [{ message, reason: "usage" }] }]);
    expect((await cli("set", "default")).code).toBe(2);
    expect(await cli("show", "nowhere")).toMatchObject({ code: 1 });
  });
});

it("the first printed command works", async () => {
  const command = server.service.firstCommands.find(({ command }) => command.includes("/v1/"));
  const url = /(http:\S+)/.exec(command?.command ?? "")?.[1] ?? "";
  const body = /-d '(.*)'$/.exec(command?.command ?? "")?.[1] ?? "";
  expect(url).toBe(`${server.url}${callPath("echo/chat/completions")}`);
  const answer = await send(server, "POST", new URL(url).pathname, {
    body,
    headers: { "content-type": "application/json" },
  });
  expect(answer.status).toBe(200);
});

it("calls, tokens and refusals are counted in the metrics", async () => {
  await post(server, "echo/chat/completions");
  await post(server, "nowhere/x");
  const text = await (await fetch(`${server.url}/metrics`)).text();
  expect(text).toMatch(/signalbox_gateway_calls_total\{provider="echo",status="200"\} [1-9]/);
  expect(text).toMatch(/signalbox_gateway_tokens_total\{provider="echo",direction="in"\} [1-9]/);
  expect(text).toMatch(/signalbox_gateway_refusals_total\{reason="gateway_unknown_provider"\} [1-9]/);
  expect(text).toMatch(/signalbox_gateway_overhead_seconds_count [1-9]/);
  expect(text).toMatch(/signalbox_gateway_calls_in_flight 0/);
});
