/** Alerts of several nodes: all of them measure, one of them decides and sends, and a killed one is replaced. */
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { waitUntil } from "../support/wait-until.ts";

const ALERTS = "/accounts/default/alerts";

let provider: ProviderPeer;
let receiver: ProviderPeer;
let cluster: TestCluster;
beforeAll(async () => {
  provider = await startProvider((_, response) => sendJson(response, 500, {}));
  receiver = await startProvider((_, response) => sendJson(response, 200, {}));
  cluster = await startTestCluster({
    mortals: 2,
    file: {
      providers: { openai: { baseUrl: provider.url } },
      outgoing: { allowPrivateHosts: true },
      alerts: { checkIntervalMs: 50 },
    },
  });
});
afterAll(async () => {
  await cluster.stop();
  await provider.close();
  await receiver.close();
});

type Alert = Record<string, unknown> & { id: string };
async function create(node: ClusterNodeProcess, settings: object): Promise<Alert> {
  const { status, body } = await node.api("POST", ALERTS, {
    name: "Errors",
    metric: "error_rate",
    threshold: 0.5,
    window: 86_400,
    min_calls: 4,
    receivers: [{ type: "webhook", url: `${receiver.url}/hook` }],
    ...settings,
  });
  expect([status, body]).toEqual([200, body]);
  return body.result as Alert;
}
const read = async (node: ClusterNodeProcess, id: string) =>
  (await node.api("GET", `${ALERTS}/${id}`)).body.result as Alert;
async function fail(node: ClusterNodeProcess): Promise<void> {
  const response = await fetch(`${node.url}/v1/default/default/openai/chat/completions`, {
    method: "POST",
    headers: {
      authorization: "Bearer sk",
      "cf-aig-authorization": `Bearer ${ROOT_TOKEN}`,
      "content-type": "application/json",
    },
    body: '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"x"}]}',
  });
  await response.arrayBuffer();
  expect(response.status).toBe(500);
}
const noticesOf = (id: string) =>
  receiver.requests.filter(({ body }) => body.includes(id)).map(({ body }) => JSON.parse(body) as object);

it("the calls of all nodes count, one node sends, and every node shows the state", async () => {
  const [a, b] = cluster.nodes as [ClusterNodeProcess, ClusterNodeProcess];
  const { id } = await create(a, {});
  await Promise.all([fail(a), fail(a), fail(b), fail(b)]);
  await waitUntil(
    () => noticesOf(id),
    (all) => all.length > 0,
  );
  expect(noticesOf(id)).toMatchObject([{ type: "alert.firing", data: { alert_id: id, value: 1 } }]);
  for (const node of [a, b]) expect(await read(node, id)).toMatchObject({ status: "firing", value: 1 });
  // Both nodes go on checking while the notices of another alert are sent.
  for (const node of [b, a]) await node.api("POST", `${ALERTS}/${(await create(node, {})).id}/test`);
  expect(noticesOf(id)).toHaveLength(1);
});

it("a notice whose sender was killed is sent by another node, with the same id", async () => {
  const [a, b] = cluster.nodes as [ClusterNodeProcess, ClusterNodeProcess];
  // Hangs until the sender is killed. Notices of the alerts of the test before may still arrive.
  const path = "/killed";
  const arrived = () => receiver.requests.filter(({ url }) => url === path);
  receiver.answer = ({ url }, response) => {
    if (url !== path) sendJson(response, 200, {});
  };
  // The calls of the test before are in its window: it may fire before the answer has arrived here.
  const { id } = await create(a, {
    min_calls: 1,
    receivers: [{ type: "webhook", url: `${receiver.url}${path}` }],
  });
  await fail(a);
  const [first] = await waitUntil(arrived, (all) => all.length > 0);
  await a.kill();
  await b.kill();
  receiver.answer = (_, response) => sendJson(response, 200, {});
  const client = new Client({ connectionString: cluster.postgres.url });
  await client.connect();
  // As if the time for the attempt had passed.
  await client.query("UPDATE alert_notice SET next_at = 1 WHERE rule_id = $1 AND next_at IS NOT NULL", [id]);
  await client.end();
  const c = await cluster.join({ name: "node-3" });
  const all = await waitUntil(arrived, (requests) => requests.length > 1);
  expect(all[1]?.headers["webhook-id"]).toBe(first?.headers["webhook-id"]);
  expect(all[1]?.body).toBe(first?.body);
  const delivered = await waitUntil(
    async () => (await c.api("GET", `${ALERTS}/${id}/notices`)).body.result as { delivered_at: unknown }[],
    ([notice]) => notice?.delivered_at !== null,
  );
  expect(delivered).toMatchObject([{ kind: "firing", attempts: 2, problem: null }]);
  expect(await read(c, id)).toMatchObject({ status: "firing" });
});
