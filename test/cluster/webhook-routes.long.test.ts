/** Routes on several nodes: a route that is saved at one node works at all of them, and the loss of nodes loses no event. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { CLUSTER_ENVIRONMENT, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { waitUntil } from "../support/wait-until.ts";
import { sendGeneric } from "../support/webhook-sender.ts";

interface Got {
  readonly path: string;
  readonly event: string;
  readonly entity: string;
  readonly n: number;
}

const ENTITIES = ["a", "b", "c"];
/** Acknowledged between two kills. */
const PER_ROUND = 60;
const got: Got[] = [];
const open = new Set<string>();
const overlaps: string[] = [];
const receiver = createServer((request, response) => {
  const event = String(request.headers["signalbox-event-id"]);
  if (open.has(event)) overlaps.push(event);
  open.add(event);
  response.once("close", () => open.delete(event));
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const { entity, n } = JSON.parse(Buffer.concat(chunks).toString()) as { entity: string; n: number };
    got.push({ path: request.url ?? "", event, entity, n });
    setTimeout(() => response.end(), n % 3 === 0 ? 30 : 0);
  });
});

let cluster: TestCluster;
beforeAll(async () => {
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  cluster = await startTestCluster({ nodes: 3, mortals: 2, file: { outgoing: { allowPrivateHosts: true } } });
});
afterAll(async () => {
  await cluster.stop();
  receiver.closeAllConnections();
  receiver.close();
});

it("three routes under load and two killed nodes: an agent gets each delivery once, each address at least once with one id, one attempt at a time, in order where asked", async () => {
  const [first, second, third] = cluster.nodes;
  if (first === undefined || second === undefined || third === undefined)
    throw new Error("three nodes are started");
  const secret = CLUSTER_ENVIRONMENT["WEBHOOK_SECRET"] ?? "";
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  const routes = "/accounts/default/webhooks/sources/generic/routes";
  const timeoutMs = 2000;
  for (const [name, settings] of Object.entries({
    agent: { to: { agent: "webhook-agent" } },
    url: { to: { url: `${url}/url`, timeoutMs } },
    ordered: { to: { url: `${url}/ordered`, timeoutMs }, order: "entity" },
  }))
    expect((await second.api("PUT", `${routes}/${name}`, settings)).status).toBe(200);
  // Known at all nodes when the write is answered.
  expect((await third.api("GET", routes)).body.result).toHaveLength(3);

  const acknowledged = new Map(ENTITIES.map((entity) => [entity, new Set<number>()]));
  const count = () => [...acknowledged.values()].reduce((sum, { size }) => sum + size, 0);
  let living = [first, second, third];
  let isEnding = false;
  const sendAll = async (entity: string) => {
    for (let n = 0; !isEnding; n++) {
      for (let isAccepted = false; !isAccepted && !isEnding;) {
        const node = living[n % living.length] ?? first;
        const payload = { id: `${entity}-${n}`, type: "t", entity, n };
        const answer = await sendGeneric(node.url, `cluster-${entity}`, payload, {}, secret).catch(
          () => null,
        );
        isAccepted = answer !== null && answer.status < 300;
        if (isAccepted) acknowledged.get(entity)?.add(n);
        else await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  };
  const senders = ENTITIES.map(sendAll);
  try {
    for (const victim of [third, second]) {
      const before = count();
      await waitUntil(count, (found) => found >= before + PER_ROUND);
      living = living.filter((node) => node !== victim);
      await victim.kill();
    }
    const before = count();
    await waitUntil(count, (found) => found >= before + PER_ROUND);
  } finally {
    isEnding = true;
    await Promise.all(senders);
  }
  await waitUntil(
    async () => (await first.api("GET", routes)).body.result as { events: { waiting: number } }[],
    (listed) => listed.every(({ events }) => events.waiting === 0),
    200,
  );
  for (const [entity, sent] of acknowledged) {
    const numbers = [...sent];
    for (const path of ["/url", "/ordered"]) {
      const own = got.filter((one) => one.path === path && one.entity === entity);
      const found = new Set(own.map(({ n }) => n));
      expect([path, numbers.filter((n) => !found.has(n))]).toEqual([path, []]);
      for (const n of numbers)
        expect(new Set(own.filter((one) => one.n === n).map(({ event }) => event)).size).toBe(1);
    }
    const order = got.filter((one) => one.path === "/ordered" && one.entity === entity).map(({ n }) => n);
    expect(order).toEqual(order.toSorted((x, y) => x - y));
    const { body } = await first.api(
      "GET",
      `/accounts/default/agents/webhook-agent/instances/cluster-${entity}`,
    );
    const { eventCount } = body.result.state as { eventCount: number };
    expect(eventCount).toBeGreaterThanOrEqual(sent.size);
    // A delivery whose acknowledgement was lost may have been stored, too.
    expect(eventCount).toBeLessThanOrEqual(sent.size + 1);
  }
  expect(overlaps).toEqual([]);
});
