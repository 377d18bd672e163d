/** Messages that all living nodes must have handled. Real links on loopback; the test decides which nodes are alive. */
import { expect, it, onTestFinished } from "vitest";
import { Secret } from "../core/secret.ts";
import { ACKNOWLEDGED, type CallService, ClusterNode } from "./cluster-node.ts";

interface TestNode {
  readonly inc: string;
  readonly node: ClusterNode;
  readonly host: string;
  readonly port: number;
}

async function openNode(inc: string, service: CallService | null): Promise<TestNode> {
  const secret = new Secret("a secret of the cluster");
  const node = new ClusterNode({ secret, host: "127.0.0.1", port: 0, isEncrypted: false });
  onTestFinished(() => node.close());
  if (service !== null) node.serve("message", service);
  node.start();
  return { inc, node, ...(await node.openAddress({ inc, cluster: "test" })) };
}

/** Node 1 and others with these services, linked. `living` may be changed. */
async function openNodes(...services: (CallService | null)[]) {
  const nodes = [await openNode("1", null)];
  for (const [index, service] of services.entries()) nodes.push(await openNode(String(index + 2), service));
  const living = new Set(nodes.map(({ inc }) => inc));
  const members = nodes.map(({ inc, host, port }) => ({
    inc,
    host,
    port,
    name: inc,
    version: "1",
    state: "up" as const,
    joinedAt: 0,
    ageMs: 0,
  }));
  for (const { node } of nodes) {
    node.useLivingNodes(() => Promise.resolve([...living]));
    node.onMembers(members);
  }
  const [first] = nodes as [TestNode];
  await expect.poll(() => first.node.linked.length).toBe(services.length);
  return { teller: first.node, nodes, living };
}

const MESSAGE = Buffer.from("7");

/** True if the promise has not been settled although everything that could settle it has had its turn. */
async function isPending(promise: Promise<unknown>, teller: ClusterNode): Promise<boolean> {
  let isSettled = false;
  void promise.catch(() => undefined).then(() => (isSettled = true));
  // Answered after everything that was sent to this node before.
  await teller.call("2", "unknown", MESSAGE).catch(() => undefined);
  await new Promise((resolve) => setImmediate(resolve));
  return !isSettled;
}

it("resolves when every living node has handled the message, and not before", async () => {
  const handled: string[] = [];
  const slow = Promise.withResolvers<void>();
  const { teller } = await openNodes(
    (payload, from) => {
      handled.push(`2 ${payload.toString()} of ${from}`);
      return ACKNOWLEDGED;
    },
    async () => {
      await slow.promise;
      handled.push("3");
      return ACKNOWLEDGED;
    },
  );
  const told = teller.tellAll("message", MESSAGE);
  await expect.poll(() => handled).toEqual(["2 7 of 1"]);
  expect(await isPending(told, teller)).toBe(true);
  slow.resolve();
  await told;
  expect(handled).toEqual(["2 7 of 1", "3"]);
});

it("does not wait for a node that was declared dead, also during the message", async () => {
  const reached = Promise.withResolvers<void>();
  const { teller, nodes, living } = await openNodes(() => {
    reached.resolve();
    return new Promise<Uint8Array>(() => undefined);
  });
  const told = teller.tellAll("message", MESSAGE);
  await reached.promise;
  living.delete("2");
  await nodes[1]?.node.close();
  await told;
  await teller.tellAll("message", MESSAGE);
});

it("tells a living node again until it has handled the message", async () => {
  let attempts = 0;
  const { teller } = await openNodes((_payload, _from) => {
    attempts += 1;
    if (attempts < 3) throw new Error("the database cannot be read");
    return ACKNOWLEDGED;
  });
  await teller.tellAll("message", MESSAGE);
  expect(attempts).toBe(3);
});

it("a node that is alive but cannot be reached is waited for, until the caller gives up", async () => {
  const { teller, living } = await openNodes(() => ACKNOWLEDGED);
  living.add("9");
  const controller = new AbortController();
  const told = teller.tellAll("message", MESSAGE, controller.signal);
  expect(await isPending(told, teller)).toBe(true);
  controller.abort(new Error("too long"));
  await expect(told).rejects.toThrow("too long");
});

it("a node of an older version, which does not know the message, has nothing to do", async () => {
  const { teller } = await openNodes(null, () => Buffer.from("known"));
  await teller.tellAll("message", MESSAGE);
  expect((await teller.askAll("message", MESSAGE)).map(String)).toEqual(["known"]);
});
