/** Stored provider keys over nodes: what a provider says about a key, and its rate limit, count at every node. A provider counts the calls. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";

const GATEWAYS = "/accounts/default/ai-gateway/gateways";
const KEYS = `${GATEWAYS}/default/provider_configs`;
/** Long enough that no window begins anew during the test. */
const MONTH_S = 30 * 86_400;

let provider: ProviderPeer;
let cluster: TestCluster;
let a: ClusterNodeProcess;
let b: ClusterNodeProcess;
let token: string;
/** Calls by key. */
const calls = new Map<string, number>();

beforeAll(async () => {
  provider = await startProvider(({ headers, body }, response) => {
    const key = String(headers.authorization).replace("Bearer ", "");
    calls.set(key, (calls.get(key) ?? 0) + 1);
    const status = key.includes("refused") ? 401 : body.includes("forbidden") ? 403 : 200;
    sendJson(response, status, { model: "m", usage: { prompt_tokens: 1, completion_tokens: 1 } });
  });
  cluster = await startTestCluster({
    nodes: 2,
    file: { providers: { openai: { baseUrl: provider.url }, mistral: { baseUrl: provider.url } } },
  });
  [a, b] = cluster.nodes as [ClusterNodeProcess, ClusterNodeProcess];
  await a.api("PUT", `${GATEWAYS}/default`, { authentication: true });
  const made = await a.api("POST", "/accounts/default/tokens", { name: "t", permissions: ["gateway.run"] });
  token = made.body.result.token;
});
afterAll(async () => {
  await cluster.stop();
  await provider.close();
});
beforeEach(() => calls.clear());

async function add(key: object): Promise<string> {
  const { status, body } = await a.api("POST", KEYS, { provider_slug: "openai", ...key });
  expect(status).toBe(200);
  return (body as { result: { id: string } }).result.id;
}

async function call(node: ClusterNodeProcess, model = "m"): Promise<Response> {
  const answer = await fetch(`${node.url}/v1/default/default/openai/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ model, max_tokens: 1 }),
    headers: { "content-type": "application/json", "cf-aig-authorization": `Bearer ${token}` },
  });
  await answer.arrayBuffer();
  return answer;
}

const statusAt = async (node: ClusterNodeProcess, id: string) => {
  const keys = (await node.api("GET", KEYS)).body.result as { id: string; status: string }[];
  return keys.find((key) => key.id === id)?.status;
};

it("a key that a provider refuses at one node is not used by another until it is edited", async () => {
  const id = await add({ secret: "key-that-is-refused-0001" });
  expect((await call(a)).status).toBe(401);
  await expect.poll(() => statusAt(b, id)).toBe("invalid");
  expect((await call(b)).status).toBe(400);
  expect(calls.get("key-that-is-refused-0001")).toBe(1);
  await b.api("PATCH", `${KEYS}/${id}`, { secret: "key-that-is-accepted-01" });
  expect([await statusAt(a, id), await statusAt(b, id)]).toEqual(["active", "active"]);
  expect([(await call(a)).status, (await call(b)).status]).toEqual([200, 200]);
  await a.api("DELETE", `${KEYS}/${id}`);
});

it("a key that has worked at one node is not invalid because another node gets a 403 for a model", async () => {
  const id = await add({ secret: "key-that-is-accepted-02" });
  expect((await call(a)).status).toBe(200);
  // The first call at the other node, as somebody would make it who wants the key to be disabled.
  expect((await call(b, "forbidden")).status).toBe(403);
  // The node takes it for a refusal of the key, until it has read that the key has worked.
  await expect.poll(async () => (await call(b)).status).toBe(200);
  expect((await call(a)).status).toBe(200);
  expect([await statusAt(a, id), await statusAt(b, id)]).toEqual(["active", "active"]);
  await b.api("DELETE", `${KEYS}/${id}`);
});

it("the rate limit of a key counts the calls of all nodes", async () => {
  const limited = await add({
    secret: "key-with-a-rate-limit-01",
    rate_limit: 40,
    rate_limit_period: MONTH_S,
  });
  const other = await add({ secret: "key-with-a-rate-limit-02", rate_limit: 20, rate_limit_period: MONTH_S });
  const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => call(i % 2 === 0 ? a : b)));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(60);
  expect(Object.fromEntries(calls)).toEqual({
    "key-with-a-rate-limit-01": 40,
    "key-with-a-rate-limit-02": 20,
  });
  for (const refusal of answers.filter(({ status }) => status !== 200)) {
    expect(refusal.status).toBe(429);
    expect(Number(refusal.headers.get("retry-after"))).toBeGreaterThan(0);
  }
  // A raised limit counts at both nodes, and what was used stays counted.
  await a.api("PATCH", `${KEYS}/${limited}`, { rate_limit: 42 });
  const more: number[] = [];
  for (const node of [b, a, b, a]) more.push((await call(node)).status);
  expect(more).toEqual([200, 200, 429, 429]);
  for (const id of [limited, other]) await a.api("DELETE", `${KEYS}/${id}`);
});

it("top-ups of prepaid credit at two nodes at once all count, and the credit is spent over both", async () => {
  const rules = [{ id: "credit", limitType: "cost", limit: 2, window: null }];
  const settings = { id: "prepaid", spend_limits: { rules } };
  expect((await a.api("POST", GATEWAYS, settings)).status).toBe(200);
  const prices = { prices: { mistral: { m: { in: 1_000_000, out: 1_000_000 } } } };
  expect((await b.api("PUT", "/accounts/default/ai-gateway/prices", prices)).status).toBe(200);
  const credit = `${GATEWAYS}/prepaid/credit`;
  const added = await Promise.all(
    Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? a : b).api("POST", credit, { amount: 2 })),
  );
  expect(added.map(({ status }) => status)).toEqual(Array(20).fill(200));
  const budgetAt = async (node: ClusterNodeProcess) =>
    (await node.api("GET", `${GATEWAYS}/prepaid/budgets`)).body.result.budgets[0];
  for (const node of [a, b]) expect(await budgetAt(node)).toMatchObject({ limit: 42, used: 0 });
  const spend = async (node: ClusterNodeProcess) => {
    const answer = await fetch(`${node.url}/v1/default/prepaid/mistral/chat/completions`, {
      method: "POST",
      body: JSON.stringify({ model: "m", max_tokens: 1 }),
      headers: { "content-type": "application/json", authorization: "Bearer key-of-the-caller" },
    });
    await answer.arrayBuffer();
    return answer.status;
  };
  // Each call costs 2 dollars.
  let passed = 0;
  const client = async (node: ClusterNodeProcess) => {
    while ((await spend(node)) === 200) passed += 1;
  };
  await Promise.all([client(a), client(b)]);
  expect(calls.get("key-of-the-caller")).toBe(passed);
  expect(passed).toBeLessThanOrEqual(21);
  await expect.poll(async () => (await budgetAt(b)).reserved).toBe(0);
  expect(await budgetAt(b)).toMatchObject({ limit: 42, used: passed * 2 });
  // Credit that is added at one node is spent at the other.
  expect((await a.api("POST", credit, { amount: 100 })).status).toBe(200);
  expect(await spend(b)).toBe(200);
});
