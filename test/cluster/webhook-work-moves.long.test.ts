/** Listeners, pauses and bulk replays on several nodes: each is one thing for the whole cluster, and survives the node that works on it. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Client } from "pg";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import {
  CLUSTER_ENVIRONMENT,
  type ClusterNodeProcess,
  startTestCluster,
  type TestCluster,
} from "../support/cluster.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { runCliProcess } from "../support/server-process.ts";
import { waitUntil } from "../support/wait-until.ts";
import { sendGeneric } from "../support/webhook-sender.ts";

const BASE = "/accounts/default/webhooks";
const WEBHOOK_SECRET = CLUSTER_ENVIRONMENT["WEBHOOK_SECRET"] ?? "";

interface Got {
  readonly event: string;
  readonly id: string;
  readonly path: string;
}

let got: Got[] = [];
let status = 200;
const receiver = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const { id } = JSON.parse(Buffer.concat(chunks).toString()) as { id: string };
    got.push({ event: String(request.headers["signalbox-event-id"]), id, path: request.url ?? "" });
    response.writeHead(status).end();
  });
});
const at = (path: string) => `http://127.0.0.1:${(receiver.address() as AddressInfo).port}${path}`;

let cluster: TestCluster;
let first: ClusterNodeProcess;
let second: ClusterNodeProcess;
let mortal: ClusterNodeProcess;
beforeAll(async () => {
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  cluster = await startTestCluster({ nodes: 3, mortals: 1, file: { outgoing: { allowPrivateHosts: true } } });
  [first, second, mortal] = cluster.nodes as [ClusterNodeProcess, ClusterNodeProcess, ClusterNodeProcess];
});
afterAll(async () => {
  await cluster.stop();
  receiver.closeAllConnections();
  receiver.close();
});
beforeEach(() => {
  got = [];
  status = 200;
});

const result = async <T>(node: ClusterNodeProcess, method: string, path: string, body?: unknown) => {
  const answer = await node.api(method, BASE + path, body);
  expect([path, answer.status]).toEqual([path, 200]);
  return answer.body.result as T;
};
const send = async (node: ClusterNodeProcess, id: string) => {
  const answer = await sendGeneric(node.url, "device", { id, type: "t" }, {}, WEBHOOK_SECRET);
  expect(answer.status).toBeLessThan(300);
};
const events = (query: string) =>
  result<{ id: string; attempts: number }[]>(first, "GET", `/events?${query}`);

/** What a connection of the listener at a node receives. */
function open(node: ClusterNodeProcess, name: string) {
  const frames: { event: string; attempt: number }[] = [];
  const ending = new AbortController();
  const state = { frames, isEnded: false, close: () => ending.abort() };
  void (async () => {
    const response = await fetch(`${node.url}${BASE}/listeners/${name}/deliveries`, {
      headers: { authorization: `Bearer ${ROOT_TOKEN}` },
      signal: ending.signal,
    });
    let text = "";
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk as Uint8Array).toString();
      const parts = text.split("\n\n");
      text = parts.pop() ?? "";
      for (const part of parts) {
        const [, data] = /^event: delivery\ndata: (.*)$/.exec(part) ?? [];
        if (data !== undefined) frames.push(JSON.parse(data) as { event: string; attempt: number });
      }
    }
  })()
    .catch(() => undefined)
    .finally(() => (state.isEnded = true));
  return state;
}

it("a listener has one connection in the cluster: a newer one at another node receives what has no result, and everything from then on", async () => {
  await result(first, "PUT", "/listeners/laptop", { sources: ["generic"] });
  const older = open(first, "laptop");
  await send(second, "before");
  await waitUntil(
    () => older.frames.length,
    (count) => count === 1,
  );
  const newer = open(mortal, "laptop");
  await waitUntil(
    () => newer.frames.length,
    (count) => count === 1,
  );
  expect(newer.frames[0]).toMatchObject({ event: older.frames[0]?.event, attempt: 2 });
  for (let n = 0; n < 20; n++) await send(cluster.nodes[n % 3] ?? first, `after-${n}`);
  await waitUntil(
    () => newer.frames.length,
    (count) => count === 21,
  );
  await waitUntil(
    () => older.isEnded,
    (isEnded) => isEnded,
  );
  expect(older.frames).toHaveLength(1);
  expect(new Set(newer.frames.map(({ event }) => event)).size).toBe(21);
  // A result can be reported at any node; one of the older connection comes too late.
  const answer = { url: "http://localhost/", status: 200, error: null, duration_ms: 1 };
  const report = (node: ClusterNodeProcess, frames: readonly { event: string; attempt: number }[]) =>
    result<{ recorded: number }>(node, "POST", "/listeners/laptop/results", {
      results: frames.map(({ event, attempt }) => ({ ...answer, event, attempt })),
    });
  expect(await report(second, older.frames)).toEqual({ recorded: 0 });
  expect(await report(second, newer.frames)).toEqual({ recorded: 21 });
  newer.close();
  await result(second, "DELETE", "/listeners/laptop");
});

it("the command goes on at another node, receives what arrived meanwhile once, and returns a route that it had taken", async () => {
  await result(first, "PUT", "/sources/generic/routes/production", { to: { url: at("/production") } });
  const listen = (node: ClusterNodeProcess, limit: string) =>
    runCliProcess(
      `webhooks listen ${at("")} generic --path /laptop --instead-of production --name dev --limit ${limit}`.split(
        " ",
      ),
      { env: { SIGNALBOX_URL: node.url, SIGNALBOX_TOKEN: ROOT_TOKEN, NO_COLOR: "1" } },
    );
  /** Known to all nodes: from then on no node delivers to the other one of the two. */
  const taken = async (listener: string | null) => {
    for (const node of cluster.nodes)
      await waitUntil(
        () => result<{ listener: string | null }>(node, "GET", "/sources/generic/routes/production"),
        (route) => route.listener === listener,
      );
  };
  const one = listen(first, "1");
  await taken("dev");
  await send(second, "one");
  expect((await one).code).toBe(0);
  // Returned at the end of the command: every node knows it.
  await taken(null);
  const two = listen(second, "2");
  await taken("dev");
  for (const id of ["two", "three"]) await send(mortal, id);
  expect((await two).code).toBe(0);
  await taken(null);
  await send(first, "four");
  await waitUntil(
    () => got,
    (all) => all.some(({ id }) => id === "four"),
  );
  expect(got.map(({ path, id }) => `${path} ${id}`).toSorted()).toEqual([
    "/laptop one",
    "/laptop three",
    "/laptop two",
    "/production four",
  ]);
  await result(second, "DELETE", "/sources/generic/routes/production");
});

it("a route that is paused at one node holds its events at all of them, and another node resumes it: each event is delivered once", async () => {
  await result(first, "PUT", "/sources/generic/routes/held", {
    to: { url: at("/held") },
    rate: { concurrent: 4 },
  });
  for (let n = 0; n < 10; n++) await send(cluster.nodes[n % 3] ?? first, `open-${n}`);
  await waitUntil(
    () => events("route=held&state=delivered"),
    (found) => found.length === 10,
  );
  await result(second, "POST", "/sources/generic/routes/held/pause");
  for (let n = 0; n < 60; n++) await send(cluster.nodes[n % 3] ?? first, `held-${n}`);
  expect(await events("route=held&state=held&limit=100")).toHaveLength(60);
  expect(got).toHaveLength(10);
  await result(mortal, "POST", "/sources/generic/routes/held/resume");
  await waitUntil(
    () => events("route=held&state=delivered&limit=100"),
    (found) => found.length === 70,
  );
  expect(got).toHaveLength(70);
  expect(new Set(got.map(({ event }) => event)).size).toBe(70);
  await result(first, "DELETE", "/sources/generic/routes/held");
});

it("a bulk replay whose node is killed goes on at another node, and replays each event once", async () => {
  const retry = { strategy: "linear", intervalMs: 1000, count: 0 };
  await result(first, "PUT", "/sources/generic/routes/bulk", {
    to: { url: at("/bulk") },
    retry,
    paused: true,
  });
  await send(first, "sample");
  const [sample] = await events("route=bulk");
  const database = new Client({ connectionString: cluster.postgres.url });
  await database.connect();
  const total = 20_001;
  try {
    // As many copies of the event that have failed.
    await database.query(
      `INSERT INTO webhook_event (id, account_id, source, route, delivery, type, received_at, state, attempts, tries, cause)
       SELECT substr(e.id, 1, 10) || lpad(n::text, 16, '0'), account_id, source, route, delivery, type, received_at, 'failed', 1, 1, cause
       FROM webhook_event e, generate_series(1, ${total - 1}) AS n WHERE e.id = $1`,
      [sample?.id],
    );
    await database.query("UPDATE webhook_event SET state = 'failed', due_at = NULL WHERE id = $1", [
      sample?.id,
    ]);
    const { id } = await result<{ id: string }>(mortal, "POST", "/replays", { route: "bulk" });
    const progress = async () => {
      const found = await database.query<{ state: string; queued: string; node: string }>(
        "SELECT state, queued, node FROM webhook_replay WHERE id = $1",
        [id],
      );
      return found.rows[0];
    };
    const begun = await waitUntil(progress, (row) => Number(row?.queued) > 0);
    await mortal.kill();
    expect(begun?.state).toBe("running");
    const killed = await progress();
    expect([killed?.state, Number(killed?.queued) < total]).toEqual(["running", true]);
    const done = await waitUntil(progress, (row) => row?.state === "done", 200);
    expect(Number(done?.queued)).toBe(total);
    expect(done?.node).not.toBe(killed?.node);
    const counted = await database.query<{ state: string; replays: string; n: string }>(
      "SELECT state, count(DISTINCT replay) AS replays, count(*) AS n FROM webhook_event WHERE route = 'bulk' GROUP BY state",
    );
    expect(counted.rows).toEqual([{ state: "waiting", replays: "1", n: String(total) }]);
    await result(second, "POST", `/replays/${id}/cancel`);
    await result(second, "DELETE", "/sources/generic/routes/bulk");
  } finally {
    await database.end();
  }
});
