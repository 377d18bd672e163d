/** The inspector's list of a cluster: what any node received is listed at every node, rejected deliveries included. */
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  CLUSTER_ENVIRONMENT,
  type ClusterNodeProcess,
  startTestCluster,
  type TestCluster,
} from "../support/cluster.ts";
import { sendGeneric } from "../support/webhook-sender.ts";

const LIST = "/accounts/default/webhooks/deliveries";
const KEEP = 30;

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 2, file: { webhooks: { keepDeliveries: KEEP } } });
});
afterAll(() => cluster.stop());

const node = (i: number): ClusterNodeProcess => {
  const found = cluster.nodes[i];
  if (found === undefined) throw new Error(`there is no node ${i}`);
  return found;
};

interface Listed {
  readonly id: string;
  readonly status: string;
  readonly delivery_id: string;
}

async function deliver(i: number, id: string, secret = CLUSTER_ENVIRONMENT["WEBHOOK_SECRET"] ?? "") {
  return (await sendGeneric(node(i).url, `entity${i}`, { id }, {}, secret)).status;
}

async function list(i: number, query = ""): Promise<Listed[]> {
  return (await node(i).api("GET", `${LIST}?limit=100${query}`)).body.result as Listed[];
}

it("lists accepted and rejected deliveries of both nodes at both nodes, in one order", async () => {
  expect([await deliver(0, "a"), await deliver(1, "b")]).toEqual([200, 200]);
  expect([await deliver(0, "c", "wrong"), await deliver(1, "d", "wrong")]).toEqual([401, 401]);
  const here = await list(0);
  expect(here.map(({ status }) => status)).toEqual(["rejected", "rejected", "accepted", "accepted"]);
  expect(await list(1)).toEqual(here);
  expect((await list(1, "&status=rejected")).map(({ id }) => id)).toEqual(
    here.slice(0, 2).map(({ id }) => id),
  );
  for (const { id } of here) {
    expect((await node(0).api("GET", `${LIST}/${id}`)).body.result).toMatchObject({ id });
    expect((await node(1).api("GET", `${LIST}/${id}`)).body.result).toMatchObject({ id });
  }
  const first = here.at(-1)?.id ?? "";
  expect((await list(1, `&after=${first}`)).map(({ id }) => id)).toEqual(
    here
      .slice(0, -1)
      .map(({ id }) => id)
      .toReversed(),
  );
  const page = await node(1).api("GET", `${LIST}?limit=3`);
  expect((page.body.result as Listed[]).map(({ id }) => id)).toEqual(here.slice(0, 3).map(({ id }) => id));
});

it("keeps the newest deliveries of both nodes together", async () => {
  for (let i = 0; i < KEEP + 10; i++) expect(await deliver(i % 2, `many-${i}`)).toBe(200);
  // Both nodes write before a list; whichever writes last prunes.
  await list(0);
  expect(await deliver(0, "last")).toBe(200);
  const accepted = await list(1, "&status=accepted");
  expect(accepted.length).toBeLessThanOrEqual(KEEP + 1);
  expect(accepted[0]?.delivery_id).toBe("last");
});
