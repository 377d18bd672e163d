/** Limits over real nodes: a provider counts what reaches it. */
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";

const GATEWAYS = "/accounts/default/ai-gateway/gateways";
const BODY = JSON.stringify({ model: "m", max_tokens: 6 });
/** Windows begin at multiples of their length since 1970: one of an hour would begin anew during one test run of a thousand. */
const MONTH_S = 30 * 86_400;

let provider: ProviderPeer;
let cluster: TestCluster;
/** By gateway. */
const calls = new Map<string, number>();

beforeAll(async () => {
  provider = await startProvider((request, response) => {
    const name = String(request.headers["x-gateway"]);
    calls.set(name, (calls.get(name) ?? 0) + 1);
    sendJson(response, 200, { model: "m", usage: { prompt_tokens: 1, completion_tokens: 6 } });
  });
  cluster = await startTestCluster({
    nodes: 3,
    file: {
      providers: { openai: { baseUrl: provider.url }, groq: { baseUrl: "http://127.0.0.1:1" } },
      gateway: { prices: { openai: { m: { in: 1_000_000, out: 1_000_000 } } } },
    },
  });
});
afterAll(async () => {
  await cluster.stop();
  await provider.close();
});

async function addGateway(id: string, settings: object): Promise<void> {
  const [node] = cluster.nodes;
  expect((await node?.api("POST", GATEWAYS, { id, ...settings }))?.status).toBe(200);
}

/** Null when the node has gone. */
async function call(node: ClusterNodeProcess, gateway: string): Promise<Response | null> {
  const answer = await fetch(`${node.url}/v1/default/${gateway}/openai/chat/completions`, {
    method: "POST",
    body: BODY,
    headers: { "content-type": "application/json", "x-gateway": gateway },
  }).catch(() => null);
  await answer?.arrayBuffer().catch(() => undefined);
  return answer;
}

/** Buckets of which running calls hold something. What a call has used is reported when it holds nothing more. */
async function countHeld(): Promise<number> {
  const client = new Client({ connectionString: cluster.postgres.url });
  await client.connect();
  const { rows } = await client.query("SELECT count(*)::int AS count FROM limit_share WHERE held <> 0");
  await client.end();
  return rows[0].count;
}

async function budgetAt(node: ClusterNodeProcess, gateway: string) {
  return (await node.api("GET", `${GATEWAYS}/${gateway}/budgets`)).body.result.budgets[0];
}

it("exactly the limit of requests passes over all nodes, and every refusal says when to come again", async () => {
  await addGateway("rate", { rate_limiting_limit: 200, rate_limiting_interval: MONTH_S });
  const refusals: Response[] = [];
  let passed = 0;
  const client = async (node: ClusterNodeProcess) => {
    for (let i = 0; i < 8; i++) {
      const answer = await call(node, "rate");
      if (answer?.status === 200) passed += 1;
      else if (answer !== null) refusals.push(answer);
    }
  };
  await Promise.all(cluster.nodes.flatMap((node) => Array.from({ length: 16 }, () => client(node))));
  expect(passed).toBe(200);
  expect(calls.get("rate")).toBe(200);
  expect(refusals).toHaveLength(3 * 16 * 8 - 200);
  for (const refusal of refusals) {
    expect(refusal.status).toBe(429);
    expect(Number(refusal.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(refusal.headers.get("x-ratelimit-limit-requests")).toBe("200");
  }
});

it("no amount that the provider billed is lost, and none beyond the limit is spent, while a node is killed", async () => {
  // Each call costs 7 dollars, and reserves 12 for its input and 6 for its output.
  const limit = 700;
  await addGateway("spend", {
    spend_limits: { rules: [{ id: "r", limitType: "cost", limit, window: null }] },
  });
  const doomed = await cluster.join({ name: "doomed", mayDie: true });
  let isKilled = false;
  const client = async (node: ClusterNodeProcess) => {
    while (node !== doomed || !isKilled) {
      const answer = await call(node, "spend");
      if (answer?.status !== 200) return;
      if ((calls.get("spend") ?? 0) >= 30 && !isKilled) {
        isKilled = true;
        await doomed.end("SIGKILL");
      }
    }
  };
  await Promise.all([...cluster.nodes].flatMap((node) => Array.from({ length: 4 }, () => client(node))));
  const [node] = cluster.nodes as [ClusterNodeProcess];
  const billed = () => (calls.get("spend") ?? 0) * 7;
  // Declared dead by PostgreSQL's clock; then what it held, and what it had taken for calls that it had not reported, counts as spent.
  await expect.poll(async () => (await budgetAt(node, "spend")).reserved).toBe(0);
  await expect.poll(async () => (await budgetAt(node, "spend")).used).toBeGreaterThanOrEqual(billed());
  const { used, remaining } = await budgetAt(node, "spend");
  expect(used).toBeLessThanOrEqual(limit);
  expect(billed()).toBeLessThanOrEqual(limit);
  expect(remaining).toBe(limit - used);
  // What is left is used to the last call that fits.
  for (;;) {
    const answer = await call(node, "spend");
    if (answer?.status !== 200) {
      expect(answer?.status).toBe(429);
      break;
    }
  }
  expect(billed()).toBeLessThanOrEqual(limit);
  await expect.poll(async () => (await budgetAt(node, "spend")).remaining).toBeLessThan(18);
});

it("a raised limit counts at every node", async () => {
  await addGateway("raised", { rate_limiting_limit: 3, rate_limiting_interval: MONTH_S });
  const [a, b] = cluster.nodes as [ClusterNodeProcess, ClusterNodeProcess];
  for (const node of [a, b, a]) expect((await call(node, "raised"))?.status).toBe(200);
  expect((await call(b, "raised"))?.status).toBe(429);
  await a.api("PUT", `${GATEWAYS}/raised`, { rate_limiting_limit: 4, rate_limiting_interval: MONTH_S });
  const statuses: (number | undefined)[] = [];
  for (const node of [b, a, b, a, b]) statuses.push((await call(node, "raised"))?.status);
  // A changed rate limit of a gateway starts a new count.
  expect(statuses).toEqual([200, 200, 200, 200, 429]);
});

it("rate and budget elements of routes count over nodes, behind a failed model too", async () => {
  const [a, b] = cluster.nodes as [ClusterNodeProcess, ClusterNodeProcess];
  await addGateway("routes", {});
  const to = (elementId: string) => ({ elementId });
  const model = (id: string, provider: string, fallback = "end") => ({
    id,
    type: "model",
    properties: { provider, model: "m", timeout: 600_000, retries: 0 },
    outputs: { success: to("end"), fallback: to(fallback) },
  });
  const limit = (id: string, properties: object, success: string) => ({
    id,
    type: "rate",
    properties: { key: "", window: MONTH_S, ...properties },
    outputs: { success: to(success) },
  });
  const addRoute = async (name: string, elements: readonly object[]) => {
    const all = [...elements, { id: "end", type: "end", outputs: {} }];
    const answer = await a.api("POST", `${GATEWAYS}/routes/routes`, { name, elements: all });
    expect(answer.status).toBe(200);
  };
  const start = (next: string) => ({ id: "start", type: "start", outputs: { next: to(next) } });
  // The provider `groq` is not reachable.
  await addRoute("behind", [
    start("first"),
    model("first", "groq", "limit"),
    limit("limit", { limitType: "count", limit: 3 }, "second"),
    model("second", "openai"),
  ]);
  // A call costs 7 dollars: the third finds nothing left.
  await addRoute("budget", [
    start("limit"),
    limit("limit", { limitType: "cost", limit: 14 }, "model"),
    model("model", "openai"),
  ]);
  const callRoute = async (node: ClusterNodeProcess, route: string) => {
    const answer = await fetch(`${node.url}/v1/default/routes/compat/chat/completions`, {
      method: "POST",
      body: JSON.stringify({
        model: `dynamic/${route}`,
        max_tokens: 6,
        messages: [{ role: "user", content: "hello" }],
      }),
      headers: { "content-type": "application/json", "x-gateway": route },
    });
    return [answer.status, await answer.text()] as const;
  };
  const statuses = async (route: string) => {
    const seen: number[] = [];
    for (const node of [a, b, a, b, a]) {
      const [status] = await callRoute(node, route);
      seen.push(status);
      await expect.poll(countHeld).toBe(0);
    }
    return seen;
  };
  expect(await statuses("behind")).toEqual([200, 200, 200, 429, 429]);
  expect(await statuses("budget")).toEqual([200, 200, 429, 429, 429]);
});
