/** The command line takes over configurations of LiteLLM and of Portkey, gateways of Cloudflare and public lists of prices. */
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AIGatewayListResponse } from "cloudflare/resources/ai-gateway/ai-gateway";
import type { CustomProviderListResponse } from "cloudflare/resources/ai-gateway/custom-providers";
import type { DynamicRoutingListResponse } from "cloudflare/resources/ai-gateway/dynamic-routing";
import type { ProviderConfigListResponse } from "cloudflare/resources/ai-gateway/provider-configs";
import { Client } from "pg";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { type ProviderAnswer, type ProviderPeer, sendJson } from "../peers/provider.ts";
import { send, startWithProvider } from "../support/gateway.ts";
import { runCommand } from "../support/run-cli.ts";
import { openTestPostgres, type TestPostgres } from "../support/test-postgres.ts";
import { ROOT_TOKEN, type TestServer } from "../support/test-server.ts";

let provider: ProviderPeer;
let server: TestServer;
let stop: () => Promise<void>;
let folder: string;
let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await openTestPostgres();
  folder = await mkdtemp(join(tmpdir(), "signalbox-import-"));
  ({ provider, server, stop } = await startWithProvider((at) => ({
    file: { providers: { openai: at, groq: at } },
    environment: { OPENAI_API_KEY: "sk-of-the-environment" },
  })));
  await writeFile(
    join(folder, "config.yaml"),
    `
model_list:
  - model_name: smart
    litellm_params: { model: openai/large, api_key: os.environ/OPENAI_API_KEY }
  - model_name: backup
    litellm_params: { model: groq/small, api_key: gsk-a-key-of-the-file-1234 }
    model_info: { input_cost_per_token: 0.000001, output_cost_per_token: 0.000001 }
litellm_settings:
  fallbacks: [{ smart: [backup] }]
  max_budget: 50
  budget_duration: 1mo
general_settings: { master_key: sk-1234 }
`,
  );
});
afterAll(async () => {
  await stop();
  await postgres.drop();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(() => {
  provider.requests.length = 0;
});

const GATEWAY = "/accounts/default/ai-gateway/gateways/default";
const readAll = async () => {
  const paths = [`${GATEWAY}/provider_configs`, `${GATEWAY}/routes`, "/accounts/default/ai-gateway/limits"];
  return Promise.all(paths.map(async (path) => (await server.api("GET", path)).body.result));
};

it("shows first what an import would create, and changes nothing", async () => {
  const before = await readAll();
  const { code, out } = await runCommand(server, [
    "import",
    "litellm",
    join(folder, "config.yaml"),
    "--dry-run",
  ]);
  expect(code).toBe(0);
  for (const part of ["would be created", "route smart", "limit litellm-budget", '"backup": "groq/small"']) {
    expect(out).toContain(part);
  }
  expect(out).not.toMatch(/gsk-a-key|sk-1234/);
  expect(await readAll()).toEqual(before);
});

it("creates keys, routes, prices and limits that work, and repeats without doubles", async () => {
  const config = join(folder, "signalbox.config.json");
  const args = ["import", "litellm", join(folder, "config.yaml")];
  const first = await runCommand(server, [...args, "--write-config", config]);
  expect([first.code, first.err]).toEqual([0, ""]);
  expect(JSON.parse(await readFile(config, "utf8"))).toEqual({
    gateway: { models: { smart: "dynamic/smart", backup: "groq/small" } },
  });
  expect((await runCommand(server, [...args, "--write-config", config])).code).toBe(2);
  const after = await readAll();
  const again = await runCommand(server, args);
  expect([again.code, again.out]).toEqual([0, expect.stringContaining("already there")]);
  expect(await readAll()).toEqual(after);

  provider.answer = ({ body }, response) =>
    body.includes("large")
      ? sendJson(response, 500, { error: { message: "down" } })
      : sendJson(response, 200, { id: "1", object: "chat.completion", model: "small", choices: [] });
  const token = await server.token(["gateway.run"]);
  const answer = await send(server, "POST", "/v1/chat/completions", {
    body: JSON.stringify({ model: "dynamic/smart", max_tokens: 5, messages: [] }),
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
  });
  // The price of `large` is not known, so under the budget the call goes to the fallback at once.
  expect([answer.status, answer.headers["gw-aig-provider"]]).toEqual([200, "groq"]);
  expect(provider.requests.at(-1)?.headers.authorization).toBe("Bearer gsk-a-key-of-the-file-1234");
});

it("imports prices from a URL: merged or as a whole, or nothing at all", async () => {
  const path = "/accounts/default/ai-gateway/prices";
  const prices = async () => ((await server.api("GET", path)).body.result as { prices: unknown }).prices;
  await server.api("PUT", path, { prices: { groq: { own: { in: 7, out: 7 } } } });
  const list = {
    "gpt-x": { litellm_provider: "openai", input_cost_per_token: 1e-6, output_cost_per_token: 2e-6 },
  };
  provider.answer = (_, response) => sendJson(response, 200, list);
  const run = (...args: string[]) =>
    runCommand(server, ["prices", "import", `${provider.url}/list.json`, ...args]);
  const openai = { "gpt-x": { in: 1, out: 2 } };
  expect((await run("--dry-run")).code).toBe(0);
  expect(await prices()).toEqual({ groq: { own: { in: 7, out: 7 } } });
  expect((await run("--merge")).code).toBe(0);
  expect(await prices()).toEqual({ groq: { own: { in: 7, out: 7 } }, openai });
  expect((await run("--provider", "openai")).code).toBe(0);
  expect(await prices()).toEqual({ openai });
  expect((await run("--provider", "groq")).code).toBe(2);
  provider.answer = (_, response) => sendJson(response, 200, { openai: { x: { in: -1, out: 0 } } });
  expect((await run()).code).toBe(2);
  expect(await prices()).toEqual({ openai });
});

/** Tables of LiteLLM with the columns and types that its migrations give them. */
const LITELLM_TABLES = `
CREATE TABLE "LiteLLM_BudgetTable" (
  budget_id text PRIMARY KEY, max_budget double precision, soft_budget double precision, max_parallel_requests integer,
  tpm_limit bigint, rpm_limit bigint, model_max_budget jsonb, budget_duration text, budget_reset_at timestamp(3));
CREATE TABLE "LiteLLM_TeamTable" (
  team_id text PRIMARY KEY, team_alias text, metadata jsonb NOT NULL DEFAULT '{}', max_budget double precision,
  spend double precision NOT NULL DEFAULT 0, models text[], tpm_limit bigint, rpm_limit bigint, budget_duration text,
  blocked boolean NOT NULL DEFAULT false, model_spend jsonb NOT NULL DEFAULT '{}');
CREATE TABLE "LiteLLM_UserTable" (
  user_id text PRIMARY KEY, user_email text, max_budget double precision, spend double precision NOT NULL DEFAULT 0, models text[]);
CREATE TABLE "LiteLLM_VerificationToken" (
  token text PRIMARY KEY, key_name text, key_alias text, spend double precision NOT NULL DEFAULT 0, expires timestamp(3), models text[],
  aliases jsonb NOT NULL DEFAULT '{}', config jsonb NOT NULL DEFAULT '{}', user_id text, team_id text, permissions jsonb NOT NULL DEFAULT '{}',
  max_parallel_requests integer, metadata jsonb NOT NULL DEFAULT '{}', blocked boolean, tpm_limit bigint, rpm_limit bigint,
  max_budget double precision, budget_duration text, allowed_routes text[] DEFAULT '{}', model_spend jsonb NOT NULL DEFAULT '{}',
  model_max_budget jsonb NOT NULL DEFAULT '{}', budget_id text);
CREATE TABLE "LiteLLM_SpendLogs" (request_id text PRIMARY KEY);
CREATE TABLE "LiteLLM_ProxyModelTable" (model_id text PRIMARY KEY);
CREATE TABLE "LiteLLM_EndUserTable" (user_id text PRIMARY KEY);
INSERT INTO "LiteLLM_SpendLogs" VALUES ('1');
INSERT INTO "LiteLLM_ProxyModelTable" VALUES ('1');
INSERT INTO "LiteLLM_BudgetTable" (budget_id, max_budget, budget_duration) VALUES ('b', 20, '7d');
INSERT INTO "LiteLLM_TeamTable" (team_id, team_alias, max_budget, spend, models, budget_duration, rpm_limit)
  VALUES ('t1', 'Search team', 50, 12.5, '{smart,backup}', '1mo', 10);
INSERT INTO "LiteLLM_UserTable" (user_id, user_email, max_budget) VALUES ('u1', 'ada@example.com', 5);
INSERT INTO "LiteLLM_VerificationToken" (token, key_name, key_alias, spend, models, user_id, team_id, rpm_limit, tpm_limit, max_parallel_requests, max_budget, budget_duration, metadata)
  VALUES ('aa11', 'sk-...aaaa', 'ci', 9.5, '{backup,other}', 'u1', 't1', 60, 3000000000, 2, 10, '30d', '{"stage":"test","list":[1]}');
INSERT INTO "LiteLLM_VerificationToken" (token, key_name, spend, expires, budget_id) VALUES ('bb22', 'sk-...bbbb', 3, '2999-01-01T00:00:00', 'b');
INSERT INTO "LiteLLM_VerificationToken" (token, key_name, key_alias, expires) VALUES ('cc33', 'sk-...cccc', 'old', '2020-01-01T00:00:00');
INSERT INTO "LiteLLM_VerificationToken" (token, key_name, key_alias, blocked) VALUES ('dd44', 'sk-...dddd', 'stopped', true);
INSERT INTO "LiteLLM_VerificationToken" (token, key_name, key_alias, models) VALUES ('ee55', 'sk-...eeee', 'elsewhere', '{unknown-model}');
INSERT INTO "LiteLLM_VerificationToken" (token, key_name, key_alias, allowed_routes) VALUES ('ff66', 'sk-...ffff', 'narrow', '{/key/info}');
INSERT INTO "LiteLLM_VerificationToken" (token, key_name, team_id) VALUES ('0077', 'sk-...0000', 'litellm-dashboard');
`;

it("issues tokens for the keys in LiteLLM's database, whose budgets go on", async () => {
  const client = new Client({ connectionString: postgres.url });
  await client.connect();
  await client.query(LITELLM_TABLES);
  await server.api("POST", "/accounts", { id: "keys" });
  await server.api("POST", "/accounts/keys/ai-gateway/gateways", { id: "default", authentication: true });
  // Variables of the service are keys of the account `default` only.
  const config = join(folder, "keys.yaml");
  const text = await readFile(join(folder, "config.yaml"), "utf8");
  await writeFile(config, text.replace("os.environ/OPENAI_API_KEY", "sk-of-the-file"));
  const args = ["import", "litellm", config, `--database=${postgres.url}`, "--account=keys"];
  const preview = await runCommand(server, [...args, "--dry-run"]);
  expect([preview.code, preview.err]).toEqual([0, ""]);
  for (const text of [
    "token ci for the key sk-...aaaa",
    "limit litellm-team-Search-team-",
    "team Search team: not taken over: rpm_limit",
    "key ci: models that were not taken over: other",
    "key ci: metadata that was not taken over: list",
    "key old: has expired and was left out",
    "key stopped: its token is disabled, because it is blocked there",
    "key elsewhere: its token is disabled, because none of its models is in the file",
    "key narrow: its token is disabled, because it is restricted by allowed_routes",
    "1 keys of dashboard sessions were left out",
    "user ada@example.com: not taken over: max_budget",
    "tables with rows that were not taken over: LiteLLM_ProxyModelTable\n",
  ])
    expect(preview.out).toContain(text);
  expect(preview.out).not.toContain("sbx_");
  const tokens = async () =>
    (await server.api("GET", "/accounts/keys/tokens")).body.result as { id: string; name: string }[];
  const nowhere = await runCommand(server, [...args, `--write-config=${join(folder, "none/x.json")}`]);
  expect([nowhere.code, nowhere.err]).toEqual([2, expect.stringContaining("--write-config")]);
  expect(await tokens()).toEqual([]);

  const first = await runCommand(server, args);
  expect(first.out).not.toContain("failed:");
  expect([first.code, first.err]).toEqual([0, ""]);
  const issuedText = /ci \(sk-\.\.\.aaaa\): (sbx_\w+)/.exec(first.out)?.[1];
  const issued = await tokens();
  const named = (name: string) => issued.find((one) => one.name === name);
  expect(issued.map(({ name }) => name).toSorted((a, b) => a.localeCompare(b))).toEqual([
    "ci",
    "elsewhere",
    "litellm bb22",
    "narrow",
    "stopped",
  ]);
  expect(named("ci")).toMatchObject({
    permissions: ["gateway.run"],
    gateway_id: "default",
    disabled: false,
    owner: "ada@example.com",
    models: ["groq/small"],
    metadata: { stage: "test", team: "Search team" },
    budgets: [{ limit: 10, window: 2_592_000 }],
    rate_limits: [
      { type: "requests", limit: 60, interval: 60 },
      { type: "tokens", limit: 1_000_000_000, interval: 60 },
      { type: "parallel", limit: 2 },
    ],
  });
  expect(named("litellm bb22")).toMatchObject({
    expires_at: "2999-01-01T00:00:00.000Z",
    budgets: [{ limit: 20, window: 604_800 }],
    models: [],
  });
  for (const name of ["stopped", "elsewhere", "narrow"])
    expect(named(name)).toMatchObject({ disabled: true });
  const spent = async (path: string) =>
    ((await server.api("GET", path)).body.result as { budgets: { rule: string; used: number }[] }).budgets;
  expect(await spent(`/accounts/keys/tokens/${named("ci")?.id}/budgets`)).toEqual(
    expect.arrayContaining([expect.objectContaining({ used: 9.5 })]),
  );
  expect(await spent("/accounts/keys/ai-gateway/budgets")).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ limit: 50, used: 12.5 }),
      expect.objectContaining({ limit: 50, used: 15.5 }),
    ]),
  );

  // Half a dollar is left to the key.
  await server.api("PUT", "/accounts/keys/ai-gateway/prices", {
    prices: { groq: { small: { in: 1, out: 1e5 } } },
  });
  const call = (model: string, max_tokens: number) =>
    send(server, "POST", "/v1/keys/default/compat/chat/completions", {
      body: JSON.stringify({ model, max_tokens, messages: [{ role: "user", content: "Hi" }] }),
      headers: { "content-type": "application/json", authorization: `Bearer ${issuedText}` },
    });
  provider.answer = (_, response) =>
    sendJson(response, 200, { id: "1", object: "chat.completion", model: "small", choices: [] });
  expect((await call("groq/small", 9)).status).toBe(429);
  expect((await call("openai/large", 1)).status).toBe(403);
  expect(provider.requests).toEqual([]);
  expect((await call("groq/small", 1)).status).toBe(200);

  // The proxy went on meanwhile, and has another team, whose row comes before.
  await client.query(`UPDATE "LiteLLM_TeamTable" SET spend = 11;
    INSERT INTO "LiteLLM_TeamTable" (team_id, team_alias, max_budget, spend, models, budget_duration)
      VALUES ('t0', 'Other team', 50, 1, '{smart}', '1mo')`);
  await client.end();
  const again = await runCommand(server, args);
  expect((await spent("/accounts/keys/ai-gateway/budgets")).map(({ used }) => used)).toContain(1);
  const limits = (await server.api("GET", "/accounts/keys/ai-gateway/limits")).body.result as object;
  expect(JSON.stringify(limits).match(/litellm-team-/g)).toHaveLength(2);
  expect([again.code, again.out]).toEqual([0, expect.stringContaining("token ci for the key sk-...aaaa")]);
  expect(again.out).not.toContain("sbx_");
  expect(await tokens()).toHaveLength(5);
});

it("reads nothing from a database that is not LiteLLM's, and names the reason", async () => {
  const args = ["import", "litellm", join(folder, "config.yaml"), "--dry-run"];
  const other = await runCommand(server, [
    ...args,
    `--database=${postgres.url.replace(/[^/]+$/, "template1")}`,
  ]);
  expect([other.code, other.err]).toEqual([2, expect.stringContaining("LiteLLM_VerificationToken")]);
  const none = await runCommand(server, [...args, "--database=postgres://nobody:secret@127.0.0.1:1/x"]);
  expect([none.code, none.err]).toEqual([2, expect.stringContaining("--database")]);
  expect(none.err).not.toContain("secret");
});

const TIME = "2026-01-01T00:00:00Z";
const SHOP: AIGatewayListResponse = {
  id: "shop",
  authentication: true,
  cache_invalidate_on_update: true,
  cache_ttl: 300,
  collect_logs: true,
  created_at: TIME,
  modified_at: TIME,
  rate_limiting_interval: 60,
  rate_limiting_limit: 100,
  rate_limiting_technique: "sliding",
  log_management: 50_000,
  log_management_strategy: "DELETE_OLDEST",
  retry_max_attempts: 3,
  retry_delay: 200,
  retry_backoff: "linear",
  logpush: true,
  logpush_public_key: null,
  zdr: false,
  store_id: null,
  workers_ai_billing_mode: "postpaid",
  dlp: { enabled: true, action: "BLOCK", profiles: ["a-profile-of-the-account"] },
  spend_limits: { enabled: true, rules: [{ id: "day", limit: 5, limitType: "cost", window: 86_400 }] },
  otel: [
    {
      url: "https://otel.example.com/v1/traces",
      headers: { "x-key": "a-key-of-otel" },
      content_type: "json",
    },
  ],
};
const DEFAULT: AIGatewayListResponse = {
  id: "default",
  is_default: true,
  cache_invalidate_on_update: false,
  cache_ttl: 120,
  collect_logs: true,
  created_at: TIME,
  modified_at: TIME,
  rate_limiting_interval: 0,
  rate_limiting_limit: 0,
};
type Route = DynamicRoutingListResponse["data"]["routes"][number];
const route = (name: string, elements: Route["elements"]): Route => ({
  id: `id-of-${name}`,
  account_tag: "abc",
  created_at: TIME,
  modified_at: TIME,
  gateway_id: "shop",
  name,
  deployment: { created_at: TIME, deployment_id: "d", version_id: "v" },
  version: { active: "true", created_at: TIME, data: "", version_id: "v" },
  elements,
});
const to = (elementId: string) => ({ elementId });
const model = (id: string, provider: string, fallback: string): Route["elements"][number] => ({
  id,
  type: "model",
  properties: { provider, model: "m", retries: 1, timeout: 0 },
  outputs: { success: to("end"), fallback: to(fallback) },
});
const ROUTES = [
  route("chat", [
    { id: "start", type: "start", outputs: { next: to("paid") } },
    {
      id: "paid",
      type: "conditional",
      properties: { conditions: { "metadata.plan": { $eq: "paid" } } },
      outputs: { true: to("own"), false: to("large") },
    },
    model("own", "custom-inhouse", "large"),
    model("large", "openai", "end"),
    { id: "end", type: "end", outputs: {} },
  ]),
  route("broken", [{ id: "start", type: "start", outputs: { next: to("nowhere") } }]),
];
const KEYS: ProviderConfigListResponse[] = [
  {
    id: "1",
    alias: "team",
    default_config: false,
    gateway_id: "shop",
    modified_at: TIME,
    provider_slug: "openai",
    secret_id: "s",
    secret_preview: "…1234",
    rate_limit: 60,
    rate_limit_period: 60,
  },
];
const INHOUSE: CustomProviderListResponse = {
  id: "p1",
  slug: "inhouse",
  name: "In-house",
  base_url: "https://models.example.com/v1",
  headers: JSON.stringify({ "x-secret": "a-header-of-inhouse" }),
  created_at: TIME,
  modified_at: TIME,
  curl_example: "curl …",
};

/** Answers like the hosted original: envelopes with pages, routes below `data`, and no answer without the token. */
const asCloudflare: ProviderAnswer = ({ url, headers }, response) => {
  const { pathname, searchParams } = new URL(url, "http://loopback");
  if (headers.authorization !== "Bearer cf-token") {
    sendJson(response, 403, {
      success: false,
      errors: [{ code: 10_000, message: "Authentication error" }],
      result: null,
    });
    return;
  }
  const path = pathname.replace("/client/v4/accounts/abc/ai-gateway", "");
  const lists: Readonly<Record<string, readonly unknown[]>> = {
    "/gateways": [SHOP, DEFAULT],
    "/custom-providers": [INHOUSE],
    "/gateways/shop/provider_configs": KEYS,
    "/gateways/shop/evaluations": [{ id: "e" }],
    "/gateways/default/provider_configs": [],
    "/gateways/shop/datasets": [],
    "/gateways/default/datasets": [],
  };
  if (path.endsWith("/routes")) {
    const routes = path.includes("shop") ? ROUTES : [];
    const data = { routes, page: 1, per_page: 50, order_by: "name", order_by_direction: "asc" };
    sendJson(response, 200, { success: true, data });
    return;
  }
  const list = lists[path];
  const page = Number(searchParams.get("page"));
  if (list === undefined) {
    sendJson(response, 404, { success: false, errors: [{ code: 7003, message: "No route" }], result: null });
    return;
  }
  // One per page, so that every list has to be read to its end.
  sendJson(response, 200, {
    success: true,
    errors: [],
    result: list.slice(page - 1, page),
    result_info: { page, per_page: 1, count: 1, total_count: list.length },
  });
};

const fromCloudflare = (...args: string[]) =>
  runCommand(server, [
    "import",
    "cloudflare",
    `--api-url=${provider.url}/client/v4`,
    "--account-id=abc",
    "--api-token=cf-token",
    ...args,
  ]);
const GATEWAYS = "/accounts/default/ai-gateway/gateways";
const resultOf = async (path: string) => (await server.api("GET", path)).body.result;

it("shows what an import from Cloudflare would create, and what cannot be taken over", async () => {
  provider.answer = asCloudflare;
  const before = await resultOf(GATEWAYS);
  const { code, out, err } = await fromCloudflare("--dry-run");
  expect([code, err]).toEqual([0, ""]);
  for (const text of [
    "would be created:\n  custom provider inhouse\n  gateway shop\n  route chat of shop\n  settings of gateway default: cache_ttl",
    "custom provider inhouse: not taken over: curl_example",
    "shop: logpush was not taken over",
    "shop: dlp was not taken over: dlp",
    'route broken of shop was left out: element "start": no element has the id "nowhere"',
    "signalbox provider-keys create openai --gateway shop --alias team --rate 60/60",
    "signalbox gateway token shop",
    "shop: 1 evaluations were not taken over",
    "/gateways/default/evaluations: HTTP 404: No route (7003)",
  ])
    expect(out).toContain(text);
  expect(out).not.toMatch(/a-key-of-otel|a-header-of-inhouse|cf-token|workers_ai_billing_mode|zdr/);
  expect(await resultOf(GATEWAYS)).toEqual(before);
});

it("creates gateways of Cloudflare from the file that was written, and keeps what is there", async () => {
  const file = join(folder, "answers.json");
  provider.answer = asCloudflare;
  const written = await fromCloudflare("--write-answers", file);
  expect([written.code, written.out]).toEqual([0, expect.stringContaining("evaluations: HTTP 404")]);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  provider.requests.length = 0;
  const { code, out, err } = await runCommand(server, ["import", "cloudflare", file]);
  expect([code, err]).toEqual([0, ""]);
  expect(out).toContain("the file has no answer of /gateways/default/evaluations");
  expect(provider.requests).toEqual([]);
  expect(await resultOf(`${GATEWAYS}/shop`)).toMatchObject({
    authentication: true,
    cache_invalidate_on_update: true,
    cache_ttl: 300,
    rate_limiting_interval: 60,
    rate_limiting_limit: 100,
    rate_limiting_technique: "sliding",
    log_management: 50_000,
    log_management_strategy: "DELETE_OLDEST",
    retry_max_attempts: 3,
    retry_delay: 200,
    retry_backoff: "linear",
    dlp: null,
    spend_limits: { rules: [{ id: "day", limit: 5, window: 86_400 }] },
    otel: [{ url: "https://otel.example.com/v1/traces", headers: { "x-key": "[secret]" } }],
  });
  expect(await resultOf(`${GATEWAYS}/default`)).toMatchObject({ cache_ttl: 120 });
  const [chat] = (await resultOf(`${GATEWAYS}/shop/routes`)) as { id: string; name: string }[];
  const trial = { metadata: { plan: "paid" } };
  const tried = await server.api("POST", `${GATEWAYS}/shop/routes/${chat?.id}/try`, trial);
  expect([chat?.name, tried.body.result]).toMatchObject(["chat", { provider: "custom-inhouse", model: "m" }]);

  await server.api("PUT", `${GATEWAYS}/default`, { cache_ttl: 77 });
  const again = await runCommand(server, ["import", "cloudflare", file]);
  expect(again.out).toContain(
    "already there:\n  custom provider inhouse\n  gateway shop\n  route chat of shop\n  gateway default",
  );
  expect(again.out).toContain("default: differs there and was kept here: cache_ttl");
  expect(again.out).not.toContain("created:");
  expect(await resultOf(`${GATEWAYS}/default`)).toMatchObject({ cache_ttl: 77 });
});

it("moves gateways from one account of this service to another, because its interface is the same", async () => {
  await server.api("POST", "/accounts", { id: "second" });
  const { code, err, out } = await runCommand(server, [
    "import",
    "cloudflare",
    `--api-url=${server.url}/client/v4`,
    "--account-id=default",
    `--api-token=${ROOT_TOKEN}`,
    "--account=second",
  ]);
  expect([code, err]).toEqual([0, ""]);
  expect(out).toContain("custom provider inhouse: set its headers again");
  expect(out).toContain("shop: otel https://otel.example.com/v1/traces: set the headers again");
  const path = "/accounts/second/ai-gateway/gateways";
  expect(await resultOf(`${path}/shop`)).toMatchObject({ cache_ttl: 300, otel: [{ headers: {} }] });
  expect(await resultOf(`${path}/shop/routes`)).toMatchObject([{ name: "chat" }]);
});

it("refuses to read from Cloudflare without a token, with a wrong one, over HTTP, or a file that has no answers", async () => {
  provider.answer = asCloudflare;
  const none = await runCommand(server, ["import", "cloudflare"]);
  expect([none.code, none.err]).toEqual([2, expect.stringContaining("CLOUDFLARE_API_TOKEN")]);
  const wrong = await fromCloudflare("--api-token", "other");
  expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("Authentication error (10000)")]);
  const open = await fromCloudflare("--api-url", "http://api.example.com/client/v4");
  expect([open.code, open.err]).toEqual([2, expect.stringContaining("https://")]);
  await writeFile(join(folder, "other.json"), '{"models": []}');
  expect((await runCommand(server, ["import", "cloudflare", join(folder, "other.json")])).code).toBe(2);
  expect((await fromCloudflare("--write-answers", join(folder, "answers.json"))).code).toBe(2);
});

it("takes over configurations of Portkey as routes that work, and repeats without doubles", async () => {
  const file = join(folder, "portkey.json");
  const target = (provider: string, model: string) => ({ provider, override_params: { model } });
  const retry = { attempts: 0 };
  await writeFile(
    file,
    JSON.stringify([
      {
        slug: "pc-support",
        config: {
          retry,
          strategy: {
            mode: "conditional",
            // oxlint-disable-next-line unicorn/no-thenable -- a member of Portkey's conditions
            conditions: [{ query: { "metadata.plan": { $ne: "paid" } }, then: "free" }],
            default: "paid",
          },
          targets: [
            { name: "free", ...target("groq", "small"), api_key: "gsk-of-portkey-5678" },
            {
              name: "paid",
              strategy: { mode: "fallback" },
              targets: [
                target("openai", "large"),
                { virtual_key: "groq-backup", override_params: { model: "small" } },
              ],
            },
          ],
        },
      },
      { slug: "pc-none", config: { strategy: { mode: "single" }, targets: [{ virtual_key: "nameless" }] } },
    ]),
  );
  // The account of the tests above has limits.
  await server.api("POST", "/accounts", { id: "moved" });
  await server.api("POST", "/accounts/moved/ai-gateway/gateways", { id: "portkey" });
  const args = ["import", "portkey", file, "--gateway", "portkey", "--account", "moved"];
  const routes = async () =>
    (await server.api("GET", "/accounts/moved/ai-gateway/gateways/portkey/routes")).body.result as unknown[];

  const preview = await runCommand(server, [...args, "--dry-run", "--json"]);
  expect([preview.code, preview.err]).toEqual([0, ""]);
  expect(JSON.parse(preview.out)).toMatchObject({
    created: ["key of groq (from the file, stored encrypted)", "route pc-support"],
    kept: [],
    failed: [],
    notes: [
      "virtual key groq-backup: keys cannot be read there: signalbox provider-keys create groq --alias groq-backup --default on",
      expect.stringMatching(/^pc-none\.targets\[0\]: .*--virtual-key nameless=PROVIDER/),
      "pc-none was left out: no target is left",
    ],
  });
  expect(preview.out).not.toContain("gsk-of-portkey");
  expect(await routes()).toEqual([]);

  expect((await runCommand(server, args)).code).toBe(0);
  const after = await routes();
  const again = await runCommand(server, [...args, "--json"]);
  expect(JSON.parse(again.out)).toMatchObject({ created: [], failed: [] });
  expect(await routes()).toEqual(after);

  provider.answer = ({ body }, response) =>
    body.includes("large")
      ? sendJson(response, 500, { error: { message: "down" } })
      : sendJson(response, 200, { id: "1", object: "chat.completion", model: "small", choices: [] });
  const token = await server.token(["gateway.run"], { account: "moved" });
  const call = async (metadata: object) => {
    provider.requests.length = 0;
    const answer = await send(server, "POST", "/v1/moved/portkey/compat/chat/completions", {
      body: JSON.stringify({ model: "dynamic/pc-support", max_tokens: 5, messages: [] }),
      headers: {
        "content-type": "application/json",
        "cf-aig-authorization": `Bearer ${token}`,
        "cf-aig-metadata": JSON.stringify(metadata),
      },
    });
    const models = provider.requests.map(({ body }) => (JSON.parse(body) as { model: string }).model);
    return [answer.status, answer.headers["gw-aig-provider"], models];
  };
  // A call without a plan is not a paid one, there and here.
  expect(await call({})).toEqual([200, "groq", ["small"]]);
  expect(provider.requests[0]?.headers.authorization).toBe("Bearer gsk-of-portkey-5678");
  expect(await call({ plan: "paid" })).toEqual([200, "groq", ["large", "small"]]);

  for (const wrong of [
    [...args, "--virtual-key", "nameless"],
    [...args, "--virtual-key", "nameless=nobody"],
    ["import", "portkey", file, "--gateway", "nowhere"],
    ["import", "portkey", join(folder, "config.yaml")],
  ])
    expect((await runCommand(server, wrong)).code).toBe(2);
});
