/** The unmodified clients of three versions of the public `agents` package, at a node that does not run their instances. */
import { AgentClient } from "agents/client";
import { AgentClient as AgentClient14 } from "agents-14/client";
import { AgentClient as AgentClient3 } from "agents-3/client";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { ROOM_AGENTS, roomAt } from "../support/rooms.ts";

let cluster: TestCluster;
/** Each test ends the owner. */
let owner: ClusterNodeProcess;
let other: ClusterNodeProcess;
beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 1, file: { agents: { modules: [ROOM_AGENTS] } } });
  [other] = cluster.nodes as [ClusterNodeProcess];
});
afterAll(() => cluster.stop());
beforeEach(async () => {
  owner = await cluster.join({ mayDie: true });
});

interface State {
  n: number;
}

const VERSIONS = [
  ["0.32.0", AgentClient],
  ["0.14.4", AgentClient14 as unknown as typeof AgentClient],
  ["0.3.2", AgentClient3 as unknown as typeof AgentClient],
] as const;

/** A client at a node, with the states that it was told and the number of times that it connected. */
class Visitor {
  readonly states: number[] = [];
  readonly client: AgentClient<unknown, State>;
  opened = 0;

  constructor(Client: typeof AgentClient, node: ClusterNodeProcess, room: string) {
    this.client = new Client<State>({
      agent: "Room",
      name: room,
      host: new URL(node.url).host,
      query: { token: ROOT_TOKEN },
      onStateUpdate: ({ n }) => this.states.push(n),
    });
    this.client.addEventListener("open", () => (this.opened += 1));
  }

  async sees(n: number): Promise<void> {
    await expect.poll(() => this.states.at(-1)).toBe(n);
  }

  /** Calls until the call succeeds: the outcome of the first ones may be unknown. */
  async call<T>(method: string, ...args: unknown[]): Promise<T> {
    for (;;) {
      try {
        return (await this.client.call(method, args)) as T;
      } catch (error) {
        if (!(error instanceof Error) || !error.message.includes("outcome of the call is unknown"))
          throw error;
      }
    }
  }
}

const END: readonly [string, () => Promise<unknown>][] = [
  ["is killed", () => owner.kill()],
  ["stops", () => owner.end("SIGTERM")],
  [
    "is paused",
    () => {
      process.kill(owner.pid, "SIGSTOP");
      return Promise.resolve();
    },
  ],
];

/** A second try finds other rooms. */
let tries = 0;

it.each(END)("the clients stay connected and converge when the owner %s", async (title, end) => {
  const visitors = await Promise.all(
    VERSIONS.map(async ([version, Client]) => {
      const room = await roomAt(
        [other, owner],
        owner,
        `${title} ${version} ${++tries}`.replaceAll(/[ .]/g, "-"),
      );
      return [new Visitor(Client, other, room), new Visitor(Client, other, room)] as const;
    }),
  );
  for (const [one, two] of visitors) {
    for (const visitor of [one, two]) await visitor.sees(0);
    expect(await one.client.call("add", [3])).toBe(3);
    one.client.setState({ n: 10 });
    for (const visitor of [one, two]) await visitor.sees(10);
  }
  try {
    await end();
    for (const [one, two] of visitors) {
      expect(await one.call("where")).toBe(other.pid);
      two.client.setState({ n: 20 });
      for (const visitor of [one, two]) await visitor.sees(20);
      expect(await two.call("add", 1)).toBe(21);
      for (const visitor of [one, two]) {
        await visitor.sees(21);
        expect(visitor.opened).toBe(1);
        // Only grows: no state is told again, and none is missing at the end.
        expect(visitor.states).toEqual([...visitor.states].sort((a, b) => a - b));
      }
      const connects = await one.call<unknown[]>("events", "connect");
      // The visitors that looked for the owner, and these two.
      const closes = await one.call<unknown[]>("events", "close");
      expect(connects.length - closes.length).toBe(2);
    }
  } finally {
    for (const visitor of visitors.flat()) visitor.client.close();
    await owner.kill();
  }
});
