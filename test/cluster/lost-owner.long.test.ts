/** What clients of one node see when the node that owns their instance is killed in the middle. */
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import {
  CLUSTER_ENVIRONMENT,
  type ClusterNodeProcess,
  startTestCluster,
  type TestCluster,
} from "../support/cluster.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import type { Answer } from "../support/send-request.ts";
import { waitUntil } from "../support/wait-until.ts";
import { sendGeneric } from "../support/webhook-sender.ts";

const ROAMING_AGENTS = join(import.meta.dirname, "../fixtures/roaming-agents.ts");
const INSTANCES = "/accounts/default/agents/roamer/instances";
const SECRET = CLUSTER_ENVIRONMENT["WEBHOOK_SECRET"] ?? "";

let cluster: TestCluster;
/** The node of the clients, and the one that is killed. */
let edge: ClusterNodeProcess;
let victim: ClusterNodeProcess;
beforeAll(async () => {
  cluster = await startTestCluster({
    nodes: 1,
    file: {
      agents: { modules: [ROAMING_AGENTS] },
      webhooks: {
        sources: { roamers: { scheme: "generic", agent: "roamer", secretVariable: "WEBHOOK_SECRET" } },
      },
    },
  });
  edge = cluster.nodes[0] as ClusterNodeProcess;
});
afterAll(() => cluster.stop());

let round = 0;
beforeEach(async () => {
  round += 1;
  victim = await cluster.join({ name: `victim-${round}`, mayDie: true });
});
afterEach(() => victim.kill());

const call = (name: string, method: string, args: unknown[] = []): Promise<Answer> =>
  edge.api("POST", `/agents/roamer/${name}/rpc/${method}`, args);

/** Instances that the victim owns. */
async function victims(count: number): Promise<string[]> {
  const names: string[] = [];
  for (let i = 0; names.length < count; i++) {
    const name = `r${round}-${i}`;
    if ((await call(name, "where")).body.result === victim.pid) names.push(name);
  }
  return names;
}

async function countOf(name: string): Promise<number> {
  const answer = await waitUntil(
    () => call(name, "count"),
    ({ status }) => status === 200,
    50,
  );
  return answer.body.result as number;
}

/** Resolves when the turn that hangs has begun: it sets the state first. */
const begun = (name: string) =>
  waitUntil(
    async () =>
      (await edge.api("GET", `${INSTANCES}/${name}/events`)).body.result as { type: string }[] | null,
    (events) => events?.some(({ type }) => type === "state") === true,
    20,
  );

/** An instance of the clients' node. */
async function own(): Promise<string> {
  for (let i = 0; ; i++) if ((await call(`own-${i}`, "where")).body.result === edge.pid) return `own-${i}`;
}

const get = (path: string, init: Omit<RequestInit, "headers"> & { headers?: Record<string, string> } = {}) =>
  fetch(edge.url + path, { ...init, headers: { authorization: `Bearer ${ROOT_TOKEN}`, ...init.headers } });

it("requests, calls, streams and tails that are under way end clearly, and reads are answered by the next owner", async () => {
  const [posted = "", called = "", asked = "", read = "", streamed = "", tailed = ""] = await victims(6);
  const caller = await own();
  await call(read, "increment", [4]);
  const post = get(`/agents/roamer/${posted}/hang`, { method: "POST" });
  const rpc = call(called, "hang");
  const ask = call(caller, "ask", [asked, "hang"]);
  for (const name of [posted, called, asked]) await begun(name);
  const stream = (await get(`/agents/roamer/${streamed}/endless`)).body?.getReader();
  await stream?.read();
  const tail = await openTail(tailed);
  await call(tailed, "increment");
  await tail.until("increment");

  await victim.kill();
  const reading = edge.api("GET", `/agents/roamer/${read}/x`);

  for (const answer of [await post, await rpc]) {
    expect(answer.status).toBe(503);
    expect(answer.headers.get("retry-after")).toBeNull();
  }
  const message =
    "The node that runs the instance was lost before it answered; the request may have been carried out";
  expect((await rpc).body.errors).toEqual([{ code: 3012, message }]);
  expect((await ask).body.result).toMatchObject({ type: "SignalboxError", message });
  const rest = async () => {
    while ((await stream?.read())?.done === false);
  };
  await expect(rest()).rejects.toThrow();

  const { status, body } = await reading;
  expect([status, body.name]).toEqual([200, read]);
  expect(await countOf(read)).toBe(4);
  // Not repeated.
  for (const name of [posted, called, asked]) expect(await countOf(name)).toBeLessThanOrEqual(1);
  await tail.until(": listening");
  await countOf(tailed);
  await tail.until("count");
  tail.close();
});

async function openTail(name: string) {
  const client = new AbortController();
  const headers = { accept: "text/event-stream" };
  const response = await get(`${INSTANCES}/${name}/events`, { headers, signal: client.signal });
  const reader = response.body?.getReader();
  let text = "";
  const until = async (what: string) => {
    while (!text.includes(what)) text += Buffer.from((await reader?.read())?.value ?? []).toString();
    text = "";
  };
  await until(": listening");
  return { until, close: () => client.abort() };
}

it("deliveries that are under way are handled once each, and none is lost", async () => {
  const names = await victims(4);
  const ids = Array.from({ length: 120 }, (_, i) => `d${i}`);
  const send = (id: string) => {
    const name = names[Number(id.slice(1)) % names.length] ?? "";
    return sendGeneric(edge.url, `roamers/${name}`, { id, type: "t" }, {}, SECRET);
  };
  let answered = 0;
  const statuses = new Map<string, number>();
  const sending = Promise.all(
    ids.map(async (id, i) => {
      // In groups, so that the kill is in the middle.
      await waitUntil(
        () => answered,
        (count) => count >= i - 20,
      );
      const { status } = await send(id);
      answered += 1;
      statuses.set(id, status);
    }),
  );
  await waitUntil(
    () => answered,
    (count) => count >= 30,
  );
  await victim.kill();
  await sending;
  // What was refused is sent again by its sender.
  for (const id of ids) {
    const status = statuses.get(id) ?? 0;
    if (status !== 200 && status !== 202) {
      expect(status).toBe(503);
      await waitUntil(
        () => send(id),
        (answer) => answer.status === 200 || answer.status === 202,
        50,
      );
    }
  }
  for (const [i, name] of names.entries()) {
    const expected = ids.filter((id) => Number(id.slice(1)) % names.length === i).toSorted();
    const seen = await waitUntil(
      async () => ((await call(name, "seen")).body.result ?? []) as string[],
      (list) => list.length >= expected.length,
      50,
    );
    expect(seen.toSorted()).toEqual(expected);
  }
});
