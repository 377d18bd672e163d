/** Realtime sessions at two nodes share the limits of their token: a message that has to wait for them keeps its place. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { type RealtimePeer, startRealtimePeer } from "../peers/realtime.ts";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { openSession, type RealtimeClient } from "../support/realtime.ts";
import { waitUntil } from "../support/wait-until.ts";

/** Windows begin at multiples of their length since 1970: one of an hour or a day could begin anew during the test. */
const MONTH_S = 30 * 86_400;
const CREATE = { type: "response.create" };
/** What the peer reports, at the prices below. */
const COST = (60 * 4 + 40 * 32 + 50 * 16 + 150 * 64) / 1e6;

let peer: RealtimePeer;
let cluster: TestCluster;
let nodes: [ClusterNodeProcess, ClusterNodeProcess];
beforeAll(async () => {
  peer = await startRealtimePeer();
  cluster = await startTestCluster({
    file: {
      providers: { openai: { baseUrl: `${peer.url}/v1` } },
      gateway: { prices: { openai: { "gpt-realtime": { in: 4, out: 16, audioIn: 32, audioOut: 64 } } } },
    },
  });
  nodes = cluster.nodes as typeof nodes;
});
afterAll(async () => {
  await cluster.stop();
  await peer.close();
});
beforeEach(() => {
  peer.sessions.length = 0;
});

async function openAtBoth(policy: object): Promise<[RealtimeClient, RealtimeClient]> {
  const { body } = await nodes[0].api("POST", "/accounts/default/tokens", {
    name: "realtime",
    permissions: ["gateway.run"],
    ...policy,
  });
  const { token } = body.result as { token: string };
  const headers = { authorization: "Bearer sk-own", "cf-aig-authorization": `Bearer ${token}` };
  const open = ({ url }: ClusterNodeProcess) =>
    openSession(`${url}/v1/default/default/openai/realtime?model=gpt-realtime`, { headers });
  return [await open(nodes[0]), await open(nodes[1])];
}
const done = ({ events }: RealtimeClient) => events.filter(({ type }) => type === "response.done").length;
const doneTimes = (client: RealtimeClient, times: number) =>
  waitUntil(
    () => done(client),
    (count) => count === times,
  );

it("a rate limit counts the responses of both nodes, and messages keep their order while one waits", async () => {
  // Two sessions, and the second response of each.
  const [a, b] = await openAtBoth({ rate_limits: [{ type: "requests", limit: 4, interval: MONTH_S }] });
  a.send(CREATE);
  a.send(CREATE);
  await doneTimes(a, 2);
  const sent = [1, 2, 3, 4].flatMap((n) => [CREATE, { type: "session.update", session: { n } }]);
  for (const message of sent) b.send(message);
  const session = await waitUntil(
    () => peer.sessions[1],
    (found) => found?.messages.at(-1)?.includes('"n":4') === true,
  );
  const [create, update] = ["response.create", "session.update"];
  expect(session?.messages.map((text) => (JSON.parse(text) as { type: string }).type)).toEqual([
    create,
    update,
    create,
    update,
    update,
    update,
  ]);
  await waitUntil(
    () => b.events.filter(({ type }) => type === "error"),
    (errors) => errors.length === 2,
  );
  expect(await b.event("error")).toMatchObject({ error: { type: "gateway_error", code: "2003" } });
  for (const client of [a, b]) client.socket.close();
});

it("a budget that one node has used up ends the session of the other one with 1008", async () => {
  const [a, b] = await openAtBoth({ budgets: [{ limit: COST * 1.5, window: MONTH_S }] });
  a.send(CREATE);
  await doneTimes(a, 1);
  a.send(CREATE);
  await doneTimes(a, 2);
  b.send(CREATE);
  expect(await b.event("error")).toMatchObject({ error: { code: "2041" } });
  expect((await b.closed).code).toBe(1008);
  expect(done(b)).toBe(0);
  a.socket.close();
  await a.closed;
});
