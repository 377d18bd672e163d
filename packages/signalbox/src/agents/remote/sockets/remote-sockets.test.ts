import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openTestPostgres, type TestPostgres } from "../../../../../../test/support/test-postgres.ts";
import { Agent } from "../../api/agent.ts";
import type { Connection, ConnectionContext } from "../../api/connection.ts";
import { TestNodes } from "../../placement/nodes-fixture.ts";
import { encodeHello, SOCKET_STREAMS } from "./hello.ts";
import { encodeOpened } from "./opened-connection.ts";
import { encodeItem, encodeNumbers, ITEM_KINDS } from "./socket-items.ts";
import { SocketNode } from "./sockets-fixture.ts";

/** What the hooks were called with. */
let hooks: string[] = [];

class Room extends Agent<unknown, { n: number }> {
  override initialState = { n: 0 };

  override onConnect({ id }: Connection, { request, props }: ConnectionContext) {
    hooks.push(`connect ${id} ${request.headers.get("x-id")} ${JSON.stringify(props)}`);
  }

  override onClose({ id }: Connection, code: number) {
    hooks.push(`close ${id} ${code}`);
  }

  override onMessage(connection: Connection, message: string) {
    connection.send(`echo ${message}`);
  }

  add() {
    this.setState({ n: this.state.n + 1 });
    return this.state.n;
  }

  sayLong() {
    this.broadcast("x".repeat(200_000));
  }

  count() {
    return [...this.getConnections()].length;
  }
}

let postgres: TestPostgres;
let nodes: TestNodes;
let owner: SocketNode;
let edge: SocketNode;
beforeAll(async () => {
  postgres = await openTestPostgres();
});
afterAll(() => postgres.drop());
beforeEach(async () => {
  hooks = [];
  nodes = await TestNodes.open(postgres, Room);
  [owner, edge] = [await SocketNode.open(await nodes.join()), await SocketNode.open(await nodes.join())];
  await SocketNode.link(owner, edge);
  // The instance runs at the first node.
  await owner.node.call("x", "add");
});
afterEach(async () => {
  for (const one of [owner, edge]) {
    await one.close();
    await one.node.stop();
  }
  await nodes.close();
});

const until = async (isTrue: () => boolean) => {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 2));
};
const greeted = '{"type":"cf_agent_state","state":{"n":1}}';

describe("many sockets at another node", () => {
  it("a broadcast to a thousand of them is one item between the nodes", async () => {
    const clients = Array.from({ length: 1000 }, (_, i) => edge.connect("x", `c${i}`));
    await until(() => clients.every(({ received }) => received.at(-1) === greeted));
    edge.items.length = 0;
    for (let i = 0; i < 5; i++) await owner.node.call("x", "add");
    await until(() => clients.every(({ states }) => states.length === 6));
    expect(edge.items.filter((kind) => kind === ITEM_KINDS.frame)).toHaveLength(5);
    expect(clients[999]?.states).toEqual([1, 2, 3, 4, 5, 6].map((n) => ({ n })));
    expect(hooks.length).toBe(1000);
    for (const client of clients) client.drop(1000);
    await until(() => hooks.length === 2000);
    await until(() => owner.node.hub.find("default/room/x")?.size === 0);
  });

  it("what an edge does not read is bounded, and costs only its own connections", async () => {
    const reader = edge.connect("x", "reader");
    await until(() => reader.received.includes(greeted));
    // An edge that says hello, opens a connection and reads nothing.
    const link = edge.links.to("1");
    const ref = owner.node.ref("x");
    // Another edge in the eyes of the owner would need another node: this one uses another instance.
    await owner.node.call("y", "add");
    const hello = {
      session: "s",
      ref: { ...ref, name: "y" },
      isContinued: false,
      received: 0,
      mayCreate: true,
    };
    const stream = link?.openStream(SOCKET_STREAMS, encodeHello(hello));
    const context = { url: "http://localhost/", method: "GET", headers: [], props: undefined };
    const opened = encodeOpened({ id: "deaf", uri: "/", isReadonly: false, context, facts: null });
    stream?.write(Buffer.concat(encodeItem(ITEM_KINDS.open, encodeNumbers(1), opened)));
    await until(() => (owner.node.hub.find("default/room/y")?.joinedCount ?? 0) === 1);
    const connection = owner.node.hub.find("default/room/y")?.find("deaf");
    for (let i = 0; i < 40; i++) await owner.node.call("y", "sayLong");
    expect(connection?.isClosed).toBe(true);
    expect(connection?.bufferedAmount).toBeLessThan(4 * 2 ** 20);
    await owner.node.call("x", "add");
    await until(() => reader.states.length === 2);
  });
});

describe("a link that breaks for a moment", () => {
  it("loses no state, doubles none, and runs no hook", async () => {
    const [one, two] = [edge.connect("x", "one"), edge.connect("x", "two")];
    await until(() => two.received.includes(greeted) && one.received.includes(greeted));
    for (let i = 0; i < 60; i++) {
      await owner.node.call("x", "add");
      void one.send(`${i}`);
      if (i % 20 === 10) edge.links.to("1")?.close({ code: "broken", message: "cut" });
    }
    await until(() => one.states.length >= 61 && two.states.length >= 61);
    const expected = Array.from({ length: 61 }, (_, i) => ({ n: i + 1 }));
    expect(one.states).toEqual(expected);
    expect(two.states).toEqual(expected);
    await until(() => one.received.includes("echo 59"));
    expect(one.received.filter((text) => text.startsWith("echo"))).toEqual(
      Array.from({ length: 60 }, (_, i) => `echo ${i}`),
    );
    expect(hooks.map((text) => text.split(" ")[0])).toEqual(["connect", "connect"]);
  });
});

describe("an instance that moves", () => {
  it("takes its connections along, back and forth", async () => {
    const [far, near] = [edge.connect("x", "far"), owner.connect("x", "near")];
    await until(() => far.received.includes(greeted) && near.received.includes(greeted));
    const ref = owner.node.ref("x");
    for (let i = 0; i < 6; i++) {
      const [from, to] = i % 2 === 0 ? [owner, edge] : [edge, owner];
      for (const client of [far, near]) void client.send(`a${i}`);
      await from.node.directory.handOver(ref, to.node.inc);
      for (const client of [far, near]) void client.send(`b${i}`);
      await until(() => [far, near].every(({ received }) => received.includes(`echo b${i}`)));
      await to.node.call("x", "add");
    }
    await until(() => far.states.length >= 7 && near.states.length >= 7);
    for (const client of [far, near]) {
      // Each state once: one that the client has is not sent again after a move.
      expect(client.states).toEqual([1, 2, 3, 4, 5, 6, 7].map((n) => ({ n })));
      const echoes = client.received.filter((text) => text.startsWith("echo"));
      expect(echoes).toEqual([0, 1, 2, 3, 4, 5].flatMap((i) => [`echo a${i}`, `echo b${i}`]));
    }
    expect(await owner.node.call("x", "count")).toBe(2);
    expect(hooks.toSorted()).toEqual(['connect far far {"id":"far"}', 'connect near near {"id":"near"}']);
    for (const client of [far, near]) client.drop(1000);
    await until(() => hooks.length === 4);
    expect(hooks.slice(2).toSorted()).toEqual(["close far 1000", "close near 1000"]);
  });
});

describe("an edge that is dead", () => {
  it("has its connections closed with 1006, once, and its sockets close when it notices", async () => {
    const client = edge.connect("x", "gone");
    await until(() => client.received.includes(greeted));
    nodes.declareDead(edge.node);
    await until(() => hooks.length === 2);
    expect(hooks[1]).toBe("close gone 1006");
    edge.node.network.self = "9";
    edge.node.network.change();
    await until(() => client.closeCode !== null);
    expect(client.closeCode).toBe(1012);
    expect(await owner.node.call("x", "count")).toBe(0);
    expect(hooks.length).toBe(2);
  });
});

describe("garbage", () => {
  it.each([
    ["an item of an unknown kind", encodeItem(77, Buffer.from("x"))],
    ["a connection that cannot be read", encodeItem(ITEM_KINDS.open, encodeNumbers(1), Buffer.from("x"))],
    ["an impossible acknowledgement", encodeItem(ITEM_KINDS.ack, Buffer.alloc(8, 0x42))],
    ["an endless item", [Buffer.from([255, 255, 255, 255, 3])]],
  ])("%s ends its session and harms nobody else", async (_title, pieces) => {
    const client = edge.connect("x", "good");
    await until(() => client.received.includes(greeted));
    const ref = { ...owner.node.ref("x"), name: "z" };
    const hello = { session: "s", ref, isContinued: false, received: 0, mayCreate: true };
    const stream = edge.links.to("1")?.openStream(SOCKET_STREAMS, encodeHello(hello));
    let code: string | undefined;
    stream?.start({
      onData: () => void stream.write(Buffer.concat(pieces)),
      onEnd: () => undefined,
      onFailure: (failure) => (code = failure.code),
    });
    await until(() => code !== undefined);
    expect(code).toBe("defect");
    expect(owner.node.logged).toContain("a node sent malformed items");
    void client.send("still here");
    await until(() => client.received.includes("echo still here"));
  });

  it.each([
    ["no JSON", Buffer.from("?")],
    ["another version", Buffer.from('{"version":99}')],
  ])("a hello that is %s is refused", async (_title, payload) => {
    const stream = edge.links.to("1")?.openStream(SOCKET_STREAMS, payload);
    const ended = new Promise((resolve) =>
      stream?.start({ onData: () => undefined, onEnd: () => undefined, onFailure: resolve }),
    );
    await ended;
    expect(edge.links.linked).toEqual(["1"]);
  });
});
