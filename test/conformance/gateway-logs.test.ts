/**
 * Stored calls through the `cloudflare` SDK: list, filters, order, pages, details, bodies, feedback, deletion,
 * retention by count.
 */
import Cloudflare, { BadRequestError, NotFoundError } from "cloudflare";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
let client: Cloudflare;
const ACCOUNT = { account_id: "default" };

beforeAll(async () => {
  server = await startTestServer({
    file: { gateway: { prices: { echo: { "priced-model": { in: 1_000_000, out: 0 } } } } },
  });
  client = new Cloudflare({ apiToken: ROOT_TOKEN, baseURL: `${server.url}/client/v4`, maxRetries: 0 });
});
afterAll(() => server.stop());

interface CallOptions {
  readonly model?: string;
  readonly headers?: Record<string, string>;
  readonly stream?: boolean;
  readonly body?: string;
  readonly path?: string;
}

/** One call through a gateway to the echo provider; resolves with its log id when the response has been read. */
async function call(gateway: string, options: CallOptions = {}): Promise<string> {
  const response = await fetch(
    `${server.url}/v1/default/${gateway}/echo/${options.path ?? "chat/completions"}`,
    {
      method: "POST",
      headers: { "content-type": "application/json", ...options.headers },
      body:
        options.body ??
        JSON.stringify({
          model: options.model ?? "echo-1",
          messages: [{ role: "user", content: "Grüße an alle" }],
          ...(options.stream === true ? { stream: true, stream_options: { include_usage: true } } : {}),
        }),
    },
  );
  await response.arrayBuffer();
  return response.headers.get("gw-aig-log-id") ?? "";
}

async function createGateway(id: string, settings: Record<string, unknown> = {}): Promise<string> {
  // The first try of a test may have left it.
  await server.api("DELETE", `/accounts/default/ai-gateway/gateways/${id}`);
  await client.aiGateway.create({
    ...ACCOUNT,
    id,
    cache_invalidate_on_update: false,
    cache_ttl: null,
    collect_logs: true,
    rate_limiting_interval: null,
    rate_limiting_limit: null,
    ...settings,
  });
  return id;
}

type ListParams = Omit<Cloudflare.AIGateway.LogListParams, "account_id">;

async function listIds(gateway: string, params: ListParams = {}): Promise<string[]> {
  const page = await client.aiGateway.logs.list(gateway, { ...ACCOUNT, ...params });
  return page.result.map((row) => row.id);
}

const filter = (
  key: Cloudflare.AIGateway.LogListParams.Filter["key"],
  operator: Cloudflare.AIGateway.LogListParams.Filter["operator"],
  ...value: (string | number | boolean | null)[]
) => ({ key, operator, value });

describe("a stored call", () => {
  it("a call is listed when the client has read its response, with the fields that the SDK types", async () => {
    const gateway = await createGateway("fields");
    const id = await call(gateway, {
      model: "priced-model",
      headers: { "gw-aig-metadata": '{"user":"ada","n":3}', "user-agent": "test-agent/1" },
    });
    const page = await client.aiGateway.logs.list(gateway, ACCOUNT);
    expect(page.result).toHaveLength(1);
    const [row] = page.result;
    expect(row).toMatchObject({
      id,
      provider: "echo",
      model: "priced-model",
      path: "chat/completions",
      success: true,
      status_code: 200,
      cached: false,
      step: 0,
      custom_cost: false,
      request_content_type: "application/json",
      user_agent: "test-agent/1",
      authentication: false,
      feedback: null,
      score: null,
    });
    expect(JSON.parse(row?.metadata ?? "")).toEqual({ user: "ada", n: 3 });
    expect(row?.tokens_in).toBeGreaterThan(0);
    expect(row?.tokens_out).toBeGreaterThan(0);
    expect(row?.cost).toBeCloseTo(row?.tokens_in ?? 0, 9);
    expect(row?.duration).toBeGreaterThanOrEqual(0);
    expect(Date.parse(row?.created_at ?? "")).toBeGreaterThan(Date.now() - 60_000);
    expect(page.result_info).toMatchObject({ page: 1, per_page: 20, count: 1, total_count: 1 });
  });

  it("a single call is read with the beginning of its bodies, and whole bodies with their content type", async () => {
    const gateway = await createGateway("detail");
    const id = await call(gateway);
    const streamed = await call(gateway, { stream: true });
    const params = { ...ACCOUNT, gateway_id: gateway };
    const row = await client.aiGateway.logs.get(id, params);
    expect(row.id).toBe(id);
    expect(row.request_head).toContain("Grüße an alle");
    expect(row.request_head_complete).toBe(true);
    expect(row.response_head).toContain("choices");
    expect(row.request_size).toBe(Buffer.byteLength(row.request_head ?? ""));
    expect(row.response_size).toBe(Buffer.byteLength(row.response_head ?? ""));
    const request = (await client.aiGateway.logs.request(id, params)) as { messages: unknown[] };
    expect(request.messages).toEqual([{ role: "user", content: "Grüße an alle" }]);
    const response = (await client.aiGateway.logs.response(id, params)) as { choices: unknown[] };
    expect(response.choices).toHaveLength(1);
    const raw = await fetch(
      `${server.url}/accounts/default/ai-gateway/gateways/${gateway}/logs/${streamed}/response`,
      { headers: { authorization: `Bearer ${ROOT_TOKEN}` } },
    );
    expect(raw.headers.get("content-type")).toContain("text/event-stream");
    expect(raw.headers.get("content-security-policy")).toContain("sandbox");
    expect(raw.headers.get("gw-aig-body-complete")).toBe("true");
    expect(await raw.text()).toMatch(/^data: \{.*data: \[DONE\]\n\n$/s);
    const streamRow = await client.aiGateway.logs.get(streamed, params);
    expect(streamRow.tokens_in).toBe(row.tokens_in);
    expect(streamRow.tokens_out).toBe(row.tokens_out);
  });

  it("request headers can switch off storing the bodies or the row", async () => {
    const gateway = await createGateway("payload");
    const id = await call(gateway, { headers: { "gw-aig-collect-log-payload": "false" } });
    await call(gateway, { headers: { "gw-aig-collect-log": "false" } });
    expect(await listIds(gateway)).toEqual([id]);
    const params = { ...ACCOUNT, gateway_id: gateway };
    expect(await client.aiGateway.logs.get(id, params)).not.toHaveProperty("request_head");
    await expect(client.aiGateway.logs.response(id, params)).rejects.toThrow(NotFoundError);
  });

  it("large integers in metadata keep their digits, and filters find them", async () => {
    const gateway = await createGateway("large-integers");
    const [, second] = [
      await call(gateway, { headers: { "gw-aig-metadata": '{"user":9007199254740992}' } }),
      await call(gateway, { headers: { "gw-aig-metadata": '{"user":9007199254740993}' } }),
    ];
    const filters = '[{"key":"metadata.value","operator":"eq","value":[9007199254740993]}]';
    const { body } = await server.api(
      "GET",
      `/accounts/default/ai-gateway/gateways/${gateway}/logs?filters=${encodeURIComponent(filters)}`,
    );
    expect(body.result.map(({ id }: { id: string }) => id)).toEqual([second]);
    expect(JSON.parse(body.result[0].metadata)).toEqual({ user: "9007199254740993" });
  });

  it("feedback, a score and metadata are stored", async () => {
    const gateway = await createGateway("feedback");
    const id = await call(gateway);
    const params = { ...ACCOUNT, gateway_id: gateway };
    await client.aiGateway.logs.edit(id, {
      ...params,
      feedback: 1,
      score: 0.5,
      metadata: { reviewed: true },
    });
    expect(await client.aiGateway.logs.get(id, params)).toMatchObject({
      feedback: 1,
      score: 0.5,
      metadata: '{"reviewed":true}',
    });
    expect(await listIds(gateway, { filters: [filter("feedback", "eq", 1)] })).toEqual([id]);
    await client.aiGateway.logs.edit(id, { ...params, feedback: null });
    expect(await client.aiGateway.logs.get(id, params)).toMatchObject({ feedback: null, score: 0.5 });
    await expect(client.aiGateway.logs.edit(id, { ...params, feedback: 7 })).rejects.toThrow(BadRequestError);
    await expect(client.aiGateway.logs.edit("nothing", { ...params, feedback: 1 })).rejects.toThrow(
      NotFoundError,
    );
  });
});

describe("the list of stored calls", () => {
  const gateway = "list";
  let ids: string[];

  beforeAll(async () => {
    await createGateway(gateway);
    ids = [];
    ids.push(await call(gateway, { model: "a", headers: { "gw-aig-metadata": '{"team":"red"}' } }));
    ids.push(
      await call(gateway, { model: "b", headers: { "gw-aig-metadata": '{"team":"blue","x":"red"}' } }),
    );
    ids.push(await call(gateway, { model: "c", stream: true, headers: { "gw-aig-event-id": "event-c" } }));
  });

  it("calls are listed newest first; direction and order can be chosen", async () => {
    expect(await listIds(gateway)).toEqual(ids.toReversed());
    expect(await listIds(gateway, { order_by_direction: "asc" })).toEqual(ids);
    expect(await listIds(gateway, { direction: "asc" })).toEqual(ids);
    expect(await listIds(gateway, { order_by: "model", order_by_direction: "desc" })).toEqual(
      ids.toReversed(),
    );
  });

  it("the SDK iterates over the pages", async () => {
    const seen: string[] = [];
    for await (const row of client.aiGateway.logs.list(gateway, { ...ACCOUNT, per_page: 2 }))
      seen.push(row.id);
    expect(seen).toEqual(ids.toReversed());
  });

  it("filters of the SDK work in any order of their properties", async () => {
    const [a, b, c] = ids;
    expect(await listIds(gateway, { filters: [filter("model", "eq", "a", "c")] })).toEqual([c, a]);
    expect(
      await listIds(gateway, { filters: [filter("model", "neq", "a"), filter("model", "neq", "c")] }),
    ).toEqual([b]);
    expect(
      await listIds(gateway, {
        filters: [
          { value: ["a", "b"], operator: "eq", key: "model" },
          { operator: "eq", value: ["b", "c"], key: "model" },
        ],
      }),
    ).toEqual([b]);
    expect(
      await listIds(gateway, { filters: [filter("response_content_type", "contains", "event-stream")] }),
    ).toEqual([c]);
    expect(await listIds(gateway, { filters: [filter("id", "gt", a ?? "")] })).toEqual([c, b]);
    expect(await listIds(gateway, { filters: [filter("event_id", "eq", "event-c")] })).toEqual([c]);
    expect(await listIds(gateway, { filters: [filter("event_id", "eq", null)] })).toEqual([b, a]);
    expect(await listIds(gateway, { filters: [filter("success", "eq", true)] })).toEqual([c, b, a]);
    expect(await listIds(gateway, { filters: [filter("authentication", "eq", true)] })).toEqual([]);
    expect(await listIds(gateway, { filters: [filter("wholesale", "eq", true)] })).toEqual([]);
    expect(await listIds(gateway, { filters: [filter("dlp_action", "eq", null)] })).toEqual([c, b, a]);
    expect(await listIds(gateway, { filters: [filter("created_at", "gt", "2020-01-01T00:00:00Z")] })).toEqual(
      [c, b, a],
    );
    expect(await listIds(gateway, { filters: [filter("created_at", "lt", 1_600_000_000_000)] })).toEqual([]);
    expect(
      await listIds(gateway, {
        filters: [filter("metadata.value", "eq", "red"), filter("metadata.key", "eq", "team")],
      }),
    ).toEqual([a]);
    expect(await listIds(gateway, { search: "red" })).toEqual([b, a]);
  });

  it("the older one-parameter filters of the SDK work", async () => {
    const [a, b, c] = ids;
    expect(await listIds(gateway, { model: "b" })).toEqual([b]);
    expect(await listIds(gateway, { provider: "echo", success: true, cached: false })).toEqual([c, b, a]);
    expect(await listIds(gateway, { min_tokens_in: 1, max_total_tokens: 100_000 })).toEqual([c, b, a]);
    expect(await listIds(gateway, { min_duration: 100_000_000 })).toEqual([]);
    expect(await listIds(gateway, { start_date: "2020-01-01", end_date: "2021-01-01" })).toEqual([]);
    expect(await listIds(gateway, { feedback: 0 })).toEqual([]);
  });

  it("meta_info adds the ranges over all pages", async () => {
    const page = await client.aiGateway.logs.list(gateway, { ...ACCOUNT, meta_info: true, per_page: 1 });
    const rows = (await client.aiGateway.logs.list(gateway, ACCOUNT)).result;
    expect(page.result_info).toMatchObject({
      total_count: 3,
      min_duration: Math.min(...rows.map((row) => row.duration)),
      max_tokens_in: Math.max(...rows.map((row) => row.tokens_in ?? 0)),
    });
  });

  it("bracketed and JSON filters are accepted", async () => {
    const path = `/accounts/default/ai-gateway/gateways/${gateway}/logs`;
    const json = encodeURIComponent('[{"key":"model","operator":"eq","value":["b"]}]');
    const queries = [
      "filters[0][key]=model&filters[0][operator]=eq&filters[0][value][]=b",
      "filters[][key]=model&filters[][operator]=eq&filters[][value]=b",
      `filters=${json}`,
    ];
    for (const query of queries) {
      const { body } = await server.api("GET", `${path}?${query}`);
      expect(body.result.map((row: { id: string }) => row.id)).toEqual([ids[1]]);
    }
  });

  it.each([
    ["filters.key=nope&filters.operator=eq&filters.value=1", 'filters: unknown key "nope"'],
    ["filters.key=constructor&filters.operator=eq&filters.value=1", 'filters: unknown key "constructor"'],
    ["filters.key=model&filters.operator=like&filters.value=1", "operator must be one of"],
    ["filters.key=model&filters.operator=eq", "needs a value"],
    ["filters.key=cost&filters.operator=gt&filters.value=much", "expected a number"],
    ["filters.key=success&filters.operator=eq&filters.value=maybe", "expected true or false"],
    ["filters.key=created_at&filters.operator=gt&filters.value=soon", "expected a time"],
    ["filters={}", "expected a JSON list"],
    ["filters=[", "expected a JSON list"],
    ["provder=x", 'unknown parameter "provder"'],
    ["per_page=5000", "per_page"],
    ["page=0", "page"],
    ["page=99999999", "too deep"],
    ["order_by=cost;drop", "order_by"],
  ])("refused: %s", async (query, message) => {
    const path = `/accounts/default/ai-gateway/gateways/${gateway}/logs?${query}`;
    const { status, body } = await server.api("GET", path);
    expect(status).toBe(400);
    expect(body.errors[0]).toMatchObject({ code: 7002, message: expect.stringContaining(message) });
  });

  it("the permission, the gateway and the account are checked", async () => {
    const path = `/accounts/default/ai-gateway/gateways/${gateway}/logs`;
    const reader = await server.token(["gateway.read"]);
    const runner = await server.token(["gateway.run"]);
    expect((await server.api("GET", path, undefined, reader)).status).toBe(200);
    expect((await server.api("GET", `${path}/${ids[0]}/request`, undefined, reader)).status).toBe(200);
    expect((await server.api("DELETE", path, undefined, reader)).status).toBe(403);
    expect((await server.api("PATCH", `${path}/${ids[0]}`, { feedback: 1 }, reader)).status).toBe(403);
    expect((await server.api("GET", path, undefined, runner)).status).toBe(403);
    expect((await server.api("GET", path, undefined, null)).status).toBe(401);
    expect((await server.api("GET", path.replace("/list/", "/none/"))).status).toBe(404);
    expect((await server.api("GET", path.replace("/list/", "/fields/") + `/${ids[0]}`)).status).toBe(404);
  });
});

describe("deletion of stored calls", () => {
  it("calls are deleted by filter, up to a limit, or all", async () => {
    const gateway = await createGateway("delete");
    const [a, b, c, d] = [
      await call(gateway, { model: "m" }),
      await call(gateway, { model: "n" }),
      await call(gateway, { model: "m" }),
      await call(gateway, { model: "n" }),
    ];
    const answer = await client.aiGateway.logs.delete(gateway, {
      ...ACCOUNT,
      filters: [filter("model", "eq", "m")],
      limit: 1,
      order_by: "created_at",
      order_by_direction: "asc",
    });
    expect(answer.success).toBe(true);
    expect(await listIds(gateway)).toEqual([d, c, b]);
    expect(a).not.toBe("");
    await client.aiGateway.logs.delete(gateway, { ...ACCOUNT, filters: [filter("model", "eq", "n")] });
    expect(await listIds(gateway)).toEqual([c]);
    expect(
      (await server.api("DELETE", `/accounts/default/ai-gateway/gateways/${gateway}/logs?modl=m`)).status,
    ).toBe(400);
    await client.aiGateway.logs.delete(gateway, ACCOUNT);
    expect(await listIds(gateway)).toEqual([]);
  });

  it("the oldest calls are deleted when there are more than the gateway keeps", async () => {
    const oldest = await createGateway("oldest", {
      log_management: 2,
      log_management_strategy: "DELETE_OLDEST",
    });
    const stop = await createGateway("stop", {
      log_management: 2,
      log_management_strategy: "STOP_INSERTING",
    });
    const calls = { oldest: [] as string[], stop: [] as string[] };
    for (let i = 0; i < 4; i++) {
      calls.oldest.push(await call(oldest));
      calls.stop.push(await call(stop));
    }
    expect(await listIds(oldest)).toEqual(calls.oldest.slice(2).toReversed());
    expect(await listIds(stop)).toEqual(calls.stop.slice(0, 2).toReversed());
  });

  it("a deleted gateway takes its calls with it, and a new gateway of the same name has none", async () => {
    const gateway = await createGateway("short-lived");
    await call(gateway);
    await client.aiGateway.delete(gateway, ACCOUNT);
    await expect(listIds(gateway)).rejects.toThrow(NotFoundError);
    await createGateway(gateway);
    expect(await listIds(gateway)).toEqual([]);
  });
});
