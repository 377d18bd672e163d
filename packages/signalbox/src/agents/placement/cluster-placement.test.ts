import { SignalboxError } from "@signalbox/protocol";
import { beforeEach, expect, test } from "vitest";
import { InstanceElsewhereError } from "../../engines/instance-store/index.ts";
import { databaseName } from "../instance/instance-ref.ts";
import type { ClusterPlacement } from "./cluster-placement.ts";
import { FakeNetwork, FakeOwnership, member, place } from "./placement-fixture.ts";
import { NotSentError } from "./placement.ts";
import { rendezvous } from "./rendezvous.ts";

const REF = { account: "default", agent: "counter", name: "a" };
const NAME = databaseName(REF);

let network: FakeNetwork;
let ownership: FakeOwnership;
let placement: ClusterPlacement;

beforeEach(() => {
  network = new FakeNetwork("1", "2", "3");
  ownership = new FakeOwnership();
  placement = place(network, ownership);
});

const never = (): never => {
  throw new Error("unexpected");
};

test("an instance that this node holds is here, without a query", () => {
  ownership.held.add(NAME);
  expect(placement.find(REF)).toBe(null);
  expect(ownership.queries).toBe(0);
});

test("a known living owner is answered without a query", () => {
  ownership.known.set(NAME, "3");
  expect(placement.find(REF)).toBe("3");
  ownership.known.set(NAME, "1");
  expect(placement.find(REF)).toBe(null);
  expect(ownership.queries).toBe(0);
});

test("an unknown owner is read from PostgreSQL", async () => {
  ownership.owners.set(NAME, "2");
  await expect(placement.find(REF)).resolves.toBe("2");
  expect(placement.find(REF)).toBe("2");
  expect(ownership.queries).toBe(1);
});

test("an instance without a living owner belongs to the node that the hash selects among those that are up", async () => {
  const winner = rendezvous(NAME, ["1", "2", "3"]);
  ownership.owners.set(NAME, "99");
  expect((await placement.find(REF)) ?? "1").toBe(winner);
  ownership.owners.delete(NAME);
  placement.learn(REF, null);
  expect((await placement.find(REF)) ?? "1").toBe(winner);
});

test("a draining node gets no new instance, and keeps its own", async () => {
  network.members = [member("1", "draining"), member("2"), member("3", "draining")];
  expect(await placement.find(REF)).toBe("2");
  ownership.known.set(NAME, "3");
  expect(placement.find(REF)).toBe("3");
  network.members = [member("1", "draining"), member("3", "draining")];
  ownership.known.delete(NAME);
  expect(await placement.find(REF)).toBe(null);
});

test("the hash spreads names evenly, and moves only those of a node that left", () => {
  const names = Array.from({ length: 3000 }, (_, i) => `name-${i}`);
  const before = names.map((name) => rendezvous(name, ["1", "2", "3"]));
  for (const node of ["1", "2", "3"])
    expect(before.filter((one) => one === node).length).toBeGreaterThan(850);
  const after = names.map((name) => rendezvous(name, ["1", "3"]));
  names.forEach((_, i) => {
    if (before[i] !== "2") expect(after[i]).toBe(before[i]);
  });
  expect(rendezvous("a", [])).toBe(null);
});

test("a node that is cut off from PostgreSQL begins nothing, and refuses what it would run as something that was not run", async () => {
  ownership.held.add(NAME);
  ownership.cutOffMs = 5001;
  await expect(placement.reach({ ref: REF, here: never, there: never })).rejects.toMatchObject({
    id: "storage_unavailable",
    message: expect.stringContaining("Nothing was run"),
    headers: { "retry-after": "1" },
  });
  // Who has the instance cannot be asked either.
  ownership.held.delete(NAME);
  await expect(placement.reach({ ref: REF, here: never, there: never })).rejects.toMatchObject({
    id: "storage_unavailable",
  });
  // Over a link the other node is reached, which may have PostgreSQL.
  ownership.known.set(NAME, "2");
  await expect(placement.reach({ ref: REF, here: never, there: async () => "there" })).resolves.toBe("there");
});

test("work waits for a PostgreSQL that restarts", async () => {
  ownership.held.add(NAME);
  ownership.cutOffMs = 2500;
  const waiting = placement.reach({ ref: REF, here: async () => "here", there: never });
  setImmediate(() => (ownership.cutOffMs = 0));
  await expect(waiting).resolves.toBe("here");
});

test("work runs where the instance is", async () => {
  ownership.known.set(NAME, "2");
  await expect(placement.reach({ ref: REF, here: never, there: async (node) => `at ${node}` })).resolves.toBe(
    "at 2",
  );
  ownership.held.add(NAME);
  await expect(placement.reach({ ref: REF, here: async () => "here", there: never })).resolves.toBe("here");
});

test("work follows an instance that has moved", async () => {
  ownership.known.set(NAME, "2");
  const asked: string[] = [];
  const there = async (node: string) => {
    asked.push(node);
    if (node === "2") throw new InstanceElsewhereError("3");
    return "done";
  };
  await expect(placement.reach({ ref: REF, here: never, there })).resolves.toBe("done");
  expect(asked).toEqual(["2", "3"]);
  expect(placement.find(REF)).toBe("3");
});

test("work that finds no owner any more asks PostgreSQL", async () => {
  ownership.known.set(NAME, "2");
  ownership.owners.set(NAME, "3");
  const there = async (node: string) => {
    if (node === "2") throw new InstanceElsewhereError(null);
    return node;
  };
  await expect(placement.reach({ ref: REF, here: never, there })).resolves.toBe("3");
});

test("an instance that is taken from this node while work waits is reached at its new owner", async () => {
  ownership.held.add(NAME);
  const here = async () => {
    ownership.held.delete(NAME);
    ownership.owners.set(NAME, "2");
    throw new InstanceElsewhereError(null);
  };
  await expect(placement.reach({ ref: REF, here, there: async (node) => node })).resolves.toBe("2");
});

test("work for a killed node waits until the node is declared dead, and then runs at another one", async () => {
  network.members = [member("1"), member("2")];
  ownership.known.set(NAME, "2");
  let attempts = 0;
  const reached = placement.reach({
    ref: REF,
    here: async () => "taken over",
    there: async () => {
      attempts += 1;
      throw new NotSentError();
    },
  });
  while (attempts < 2) await new Promise((resolve) => setImmediate(resolve));
  network.setMembers(member("1"));
  await expect(reached).resolves.toBe("taken over");
});

test("a link that opens ends the wait at once", async () => {
  ownership.known.set(NAME, "2");
  let isLinked = false;
  let attempts = 0;
  const reached = placement.reach({
    ref: REF,
    here: never,
    there: async () => {
      attempts += 1;
      if (!isLinked) throw new NotSentError();
      return attempts;
    },
  });
  while (attempts < 1) await new Promise((resolve) => setImmediate(resolve));
  isLinked = true;
  network.change();
  await expect(reached).resolves.toBe(2);
});

test("two nodes that answer with each other are not asked in a loop", async () => {
  placement = place(network, ownership, 200);
  ownership.owners.set(NAME, "2");
  let attempts = 0;
  const there = async (node: string) => {
    attempts += 1;
    throw new InstanceElsewhereError(node === "2" ? "3" : "2");
  };
  await expect(placement.reach({ ref: REF, here: never, there })).rejects.toMatchObject({ id: "overloaded" });
  expect(attempts).toBeLessThan(12);
});

test("work that cannot be sent is refused with 503 and Retry-After in the end", async () => {
  placement = place(network, ownership, 100);
  ownership.known.set(NAME, "2");
  // After some pauses the owner is read again.
  ownership.owners.set(NAME, "2");
  const refused = await placement
    .reach({ ref: REF, here: never, there: () => Promise.reject(new NotSentError()) })
    .catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(SignalboxError);
  expect(refused).toMatchObject({ id: "overloaded", headers: { "retry-after": "1" } });
  expect((refused as Error).cause).toBeInstanceOf(NotSentError);
});

test("any other error ends the attempt: the work may have run", async () => {
  ownership.known.set(NAME, "2");
  let attempts = 0;
  const there = async () => {
    attempts += 1;
    throw new Error("broken");
  };
  await expect(placement.reach({ ref: REF, here: never, there })).rejects.toThrow("broken");
  expect(attempts).toBe(1);
});

test("a database that cannot be read ends the attempt", async () => {
  ownership.error = new SignalboxError("storage_unavailable");
  await expect(placement.reach({ ref: REF, here: never, there: never })).rejects.toMatchObject({
    id: "storage_unavailable",
  });
});

test("an aborted signal ends the wait with its reason", async () => {
  ownership.known.set(NAME, "2");
  const controller = new AbortController();
  let attempts = 0;
  const reached = placement.reach({
    ref: REF,
    here: never,
    there: async () => {
      attempts += 1;
      if (attempts === 3) controller.abort(new Error("gone"));
      throw new NotSentError();
    },
    signal: controller.signal,
  });
  await expect(reached).rejects.toThrow("gone");
  expect(attempts).toBe(3);
});

test("the owner is asked for again at once if a node that stops takes no more", async () => {
  network.members = [member("1"), member("2"), member("3", "draining")];
  ownership.known.set(NAME, "3");
  ownership.owners.set(NAME, "2");
  const tried: string[] = [];
  const there = async (node: string) => {
    tried.push(node);
    if (node === "3") throw new NotSentError("the node stops");
    return node;
  };
  expect(await placement.reach({ ref: REF, here: never, there })).toBe("2");
  expect(tried).toEqual(["3", "2"]);
});
