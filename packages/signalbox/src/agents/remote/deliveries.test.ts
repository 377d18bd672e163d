import { SignalboxError } from "@signalbox/protocol";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { AgentDeliveries, DeliveryOutcome } from "../../contracts/agent-deliveries.ts";
import type { WebhookEvent } from "../../contracts/webhook-event.ts";
import { InstanceElsewhereError, InstanceFencedError } from "../../engines/instance-store/index.ts";
import { createClusterDeliveries, serveDeliveries } from "./deliveries.ts";
import { openTestNodes, type TestNodes } from "./network-fixture.ts";

const LIMITS = { maxInFlight: 10, maxBufferedBytes: 100_000 };
const TARGET = { account: "default", agent: "webhook-agent", name: "cat" };
const KEY = "default/webhook-agent/cat";

let nodes: TestNodes;
beforeEach(async () => {
  nodes = await openTestNodes();
});
afterEach(() => nodes.close());

function event(id: string, text = ""): WebhookEvent {
  const payload = { text };
  return {
    id,
    source: "generic",
    type: "t",
    action: null,
    timestamp: "2026-11-16T00:00:00.000Z",
    title: "t",
    description: null,
    url: null,
    actor: null,
    headers: { "x-a": "b" },
    payload,
    rawBody: Buffer.from(JSON.stringify(payload)),
  };
}

/** A door that remembers what it ran, and answers as the test says. */
function door(answer: (id: string) => DeliveryOutcome | Promise<DeliveryOutcome>) {
  const ran: string[] = [];
  const prepared: string[] = [];
  const local: AgentDeliveries = {
    hasAgent: (agent) => agent === TARGET.agent,
    agentNames: () => [TARGET.agent],
    prepare: ({ name }) => void prepared.push(name),
    deliver: async (_target, { id }) => {
      ran.push(id);
      return answer(id);
    },
  };
  return { local, ran, prepared };
}

const processed = () => door(() => ({ kind: "processed" }));

function connect(one: AgentDeliveries, two: AgentDeliveries, limits = LIMITS): AgentDeliveries {
  serveDeliveries(one, nodes.one.network, limits);
  serveDeliveries(two, nodes.two.network, limits);
  return createClusterDeliveries(one, nodes.one.network, nodes.one.placement);
}

it("a delivery runs at the owner, wherever it arrives", async () => {
  const [here, there] = [processed(), processed()];
  const cluster = connect(here.local, there.local);
  expect(await cluster.deliver(TARGET, event("1"))).toEqual({ kind: "processed" });
  nodes.owners.set(KEY, "1");
  expect(await cluster.deliver(TARGET, event("2"))).toEqual({ kind: "processed" });
  expect([here.ran, there.ran]).toEqual([["2"], ["1"]]);
});

it("a node that is not the owner names the owner, and the delivery runs there", async () => {
  const here = processed();
  const there = door(() => Promise.reject(new InstanceElsewhereError("1")));
  const cluster = connect(here.local, there.local);
  expect(await cluster.deliver(TARGET, event("1"))).toEqual({ kind: "processed" });
  expect([here.ran, there.ran]).toEqual([["1"], ["1"]]);
});

it("a delivery whose link breaks is sent again with the same id", async () => {
  const stuck = Promise.withResolvers<DeliveryOutcome>();
  const here = processed();
  const there = door(() => {
    if (there.ran.length === 1) {
      // The answer of the first attempt is lost with the link.
      nodes.one.links.to("2")?.close({ code: "broken", message: "test" });
      return stuck.promise;
    }
    return { kind: "duplicate" };
  });
  const cluster = connect(here.local, there.local);
  expect(await cluster.deliver(TARGET, event("1"))).toEqual({ kind: "duplicate" });
  expect(there.ran).toEqual(["1", "1"]);
  stuck.resolve({ kind: "processed" });
});

it.each([
  ["another node has taken the instance", () => new InstanceFencedError("taken")],
  ["the owner stops", () => new SignalboxError("stopping")],
])("a delivery is tried again when %s", async (_why, error) => {
  const there = door(() => (there.ran.length < 3 ? Promise.reject(error()) : { kind: "processed" }));
  const cluster = connect(processed().local, there.local);
  expect(await cluster.deliver(TARGET, event("1"))).toEqual({ kind: "processed" });
  expect(there.ran).toHaveLength(3);
});

it("errors of the owner reach the caller as they were", async () => {
  const rejection = new SignalboxError("webhook_rejected", {
    message: "no",
    headers: { "retry-after": "9" },
  });
  const there = door((id) =>
    Promise.reject(id === "1" ? rejection : Object.assign(new Error("empty"), { name: "TankError" })),
  );
  const cluster = connect(processed().local, there.local);
  await expect(cluster.deliver(TARGET, event("1"))).rejects.toMatchObject({
    id: "webhook_rejected",
    status: 400,
    message: "no",
    headers: { "retry-after": "9" },
  });
  await expect(cluster.deliver(TARGET, event("2"))).rejects.toMatchObject({
    name: "TankError",
    message: "empty",
  });
  expect(there.ran).toEqual(["1", "2"]);
});

it("an unknown agent and an invalid name are refused without a hop", async () => {
  const there = processed();
  const cluster = connect(processed().local, there.local);
  await expect(cluster.deliver({ ...TARGET, agent: "nope" }, event("1"))).rejects.toMatchObject({
    id: "agent_not_found",
  });
  await expect(cluster.deliver({ ...TARGET, name: "a\0" }, event("1"))).rejects.toMatchObject({
    id: "agent_invalid_name",
  });
  expect(there.ran).toEqual([]);
});

it("only the owner prepares an instance", async () => {
  const here = processed();
  const cluster = connect(here.local, processed().local);
  cluster.prepare(TARGET);
  nodes.owners.set("default/webhook-agent/dog", "1");
  cluster.prepare({ ...TARGET, name: "dog" });
  expect(here.prepared).toEqual(["dog"]);
});

it("the owner refuses deliveries beyond its limits, and has room again afterwards", async () => {
  const open = Promise.withResolvers<DeliveryOutcome>();
  const there = door(() => open.promise);
  const cluster = connect(processed().local, there.local, { maxInFlight: 3, maxBufferedBytes: 20_000 });
  const running = ["1", "2", "3"].map((id) => cluster.deliver(TARGET, event(id)));
  await expect.poll(() => there.ran.length).toBe(3);
  await expect(cluster.deliver(TARGET, event("4"))).rejects.toMatchObject({ id: "overloaded", status: 503 });
  open.resolve({ kind: "processed" });
  await Promise.all(running);
  await expect(cluster.deliver(TARGET, event("5", "x".repeat(30_000)))).rejects.toMatchObject({
    id: "overloaded",
  });
  expect(await cluster.deliver(TARGET, event("6", "x".repeat(10_000)))).toEqual({ kind: "processed" });
});

it("bytes that are not a delivery are answered with an error and run nothing", async () => {
  const there = processed();
  connect(processed().local, there.local);
  const answer = await nodes.one.network.call("2", "agents.deliver", Buffer.from("nonsense"));
  expect(answer.toString("latin1")).toContain("PacketError");
  expect(there.ran).toEqual([]);
});
