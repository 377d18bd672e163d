/** Sockets of an instance that does not come to rest: it moves, its links break, its owner dies, its clients lose their credentials. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { openTestPostgres, type TestPostgres } from "../../../../../../test/support/test-postgres.ts";
import { Agent } from "../../api/agent.ts";
import type { Connection } from "../../api/connection.ts";
import { InstanceElsewhereError } from "../../../engines/instance-store/index.ts";
import { databaseName } from "../../instance/instance-ref.ts";
import { TestNodes } from "../../placement/nodes-fixture.ts";
import { SocketNode, type TestClient } from "./sockets-fixture.ts";

/** What the hooks were called with. */
let hooks: string[] = [];

class Room extends Agent<unknown, { n: number }> {
  override initialState = { n: 0 };

  override onConnect({ id }: Connection) {
    hooks.push(`connect ${id}`);
  }

  override onClose({ id }: Connection, code: number) {
    hooks.push(`close ${id} ${code}`);
  }

  override onMessage(connection: Connection, message: string) {
    this.setState({ n: this.state.n + 1 });
    connection.send(`echo ${message}`);
  }

  read() {
    return this.state.n;
  }
}

let postgres: TestPostgres;
let nodes: TestNodes;
let all: SocketNode[];
beforeAll(async () => {
  postgres = await openTestPostgres();
});
afterAll(() => postgres.drop());
beforeEach(async () => {
  hooks = [];
  nodes = await TestNodes.open(postgres, Room);
  all = [];
  for (let i = 0; i < 3; i++) all.push(await SocketNode.open(await nodes.join()));
  await SocketNode.link(...all);
});
afterEach(async () => {
  for (const one of all) {
    await one.close();
    await one.node.stop();
  }
  await nodes.close();
});

const until = async (isTrue: () => boolean) => {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 2));
};
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const echoes = ({ received }: TestClient) => received.filter((text) => text.startsWith("echo"));
const expectGrowing = ({ states }: TestClient) => {
  const numbers = states.map((state) => (state as { n: number }).n);
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
  return numbers;
};

/** Asks again, as placement does: a message may have begun to ask for the owner before the hand-over, and the call waits for the same answer. */
async function readAt({ node }: SocketNode): Promise<unknown> {
  for (;;) {
    try {
      return await node.call("x", "read");
    } catch (error) {
      if (!(error instanceof InstanceElsewhereError)) throw error;
    }
  }
}

it("moves from node to node without a rest while links break: each message runs once, in order, and no hook runs again", async () => {
  const [a, b, c] = all as [SocketNode, SocketNode, SocketNode];
  await b.node.call("x", "read");
  const clients = [a.connect("x", "at-a"), b.connect("x", "at-b"), c.connect("x", "at-c")];
  await until(() => clients.every(({ states }) => states.length === 1));
  const ref = b.node.ref("x");
  let sent = 0;
  let isDone = false;
  const sending = (async () => {
    for (; !isDone; sent++) {
      for (const client of clients) void client.send(String(sent));
      await pause(3);
    }
  })();
  let owner = b;
  // B, C, B, C, …, and A now and then; some moves begin before the sockets have followed the last one.
  for (let i = 0; i < 24; i++) {
    const to = i % 7 === 6 ? a : owner === c ? b : c;
    await owner.node.directory.handOver(ref, to.node.inc);
    if (to === owner) continue;
    await readAt(to);
    owner = to;
    if (i % 3 === 1) a.links.to(owner.node.inc)?.close({ code: "broken", message: "cut" });
    if (i % 4 === 0) await pause(20);
  }
  isDone = true;
  await sending;
  const expected = Array.from({ length: sent }, (_, i) => `echo ${i}`);
  await until(() => clients.every((client) => echoes(client).length >= sent));
  for (const client of clients) expect(echoes(client)).toEqual(expected);
  expect(await owner.node.call("x", "read")).toBe(3 * sent);
  await until(() => clients.every((client) => (client.states.at(-1) as { n: number }).n === 3 * sent));
  // No state twice, none out of order. Those of an owner that the sockets of a node never reached are left out.
  for (const client of clients) expectGrowing(client);
  expect(hooks.toSorted()).toEqual(["connect at-a", "connect at-b", "connect at-c"]);
  for (const client of clients) client.drop(1000);
  await until(() => hooks.length === 6);
  expect(hooks.slice(3).toSorted()).toEqual(["close at-a 1000", "close at-b 1000", "close at-c 1000"]);
});

it("a take-over while sockets send: what has an answer ran once, states grow, and no hook runs again", async () => {
  const [a, b, c] = all as [SocketNode, SocketNode, SocketNode];
  await b.node.call("x", "read");
  const clients = [a.connect("x", "at-a"), c.connect("x", "at-c")];
  await until(() => clients.every(({ states }) => states.length === 1));
  let sent = 0;
  let isDone = false;
  const sending = (async () => {
    for (; !isDone; sent++) {
      for (const client of clients) void client.send(String(sent));
      await pause(2);
    }
  })();
  await until(() => clients.every((client) => echoes(client).length > 20));
  // The owner is declared dead and does not know: it goes on, and its writes are refused.
  nodes.declareDead(b.node);
  for (const one of [a, c]) one.links.setPeers([]);
  await SocketNode.link(a, c);
  const before = clients.map((client) => echoes(client).length);
  await until(() => clients.every((client, i) => echoes(client).length > (before[i] ?? 0) + 20));
  isDone = true;
  await sending;
  await until(() => clients.every((client) => echoes(client).at(-1) === `echo ${sent - 1}`));
  for (const client of clients) {
    const numbers = echoes(client).map((text) => Number(text.slice(5)));
    expect(numbers).toEqual([...new Set(numbers)].sort((x, y) => x - y));
    expectGrowing(client);
  }
  expect(hooks.filter((text) => text.startsWith("connect")).toSorted()).toEqual([
    "connect at-a",
    "connect at-c",
  ]);
  // A message that had reached the dead owner may have run without an answer; none ran twice.
  const count = (await a.node.placement.reach({
    ref: a.node.ref("x"),
    here: () => a.node.call("x", "read"),
    there: () => c.node.call("x", "read"),
  })) as number;
  expect(count).toBeGreaterThanOrEqual(clients.reduce((sum, client) => sum + echoes(client).length, 0));
  expect(count).toBeLessThanOrEqual(2 * sent);
});

it("messages that wait for the instance do not take effect when their credential has ended, here or elsewhere", async () => {
  const names = Array.from({ length: 12 }, (_, i) => `new-${i}`);
  const [a] = all as [SocketNode];
  const places = new Set<string>();
  const clients: TestClient[] = [];
  for (const name of names) {
    places.add(a.node.placement.candidate(databaseName(a.node.ref(name))));
    // The owner is not known yet: the look-up takes a query.
    const client = a.connect(name, `at-${name}`);
    void client.send("late");
    client.loseCredential();
    void client.send("later");
    clients.push(client);
  }
  expect(places.has(a.node.inc) && places.size > 1).toBe(true);
  for (const name of names) {
    const ref = a.node.ref(name);
    const count = await a.node.placement.reach({
      ref,
      here: () => a.node.call(name, "read"),
      there: (inc) => nodes.nodes.get(inc)?.call(name, "read") as Promise<unknown>,
    });
    expect(count).toBe(0);
  }
  expect(hooks).toEqual([]);
  for (const client of clients) client.drop(1008);
});
