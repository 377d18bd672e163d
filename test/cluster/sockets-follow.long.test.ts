/** WebSockets follow their instance when its node is killed, paused or stopped, without a second `onConnect`. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import type { RawClient } from "../support/agents.ts";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { ask, enter, events, ROOM_AGENTS, roomAt } from "../support/rooms.ts";

let cluster: TestCluster;
let staying: ClusterNodeProcess;
/** Each test ends it. */
let victim: ClusterNodeProcess;
beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 1, file: { agents: { modules: [ROOM_AGENTS] } } });
  [staying] = cluster.nodes as [ClusterNodeProcess];
});
afterAll(() => cluster.stop());
beforeEach(async () => {
  victim = await cluster.join({ mayDie: true });
});
afterEach(() => victim.kill());

/** A new room at the node. */
const roomOf = (owner: ClusterNodeProcess) => roomAt([staying, victim], owner, `room-${victim.pid}`);

const isState = (frame: { type?: string }) => frame.type === "cf_agent_state";

/** The states that a client has received since the last call. */
function takeStates(client: RawClient): number[] {
  const states = client.received.filter(isState).map(({ state }) => state.n as number);
  client.received.splice(0, client.received.length, ...client.received.filter((frame) => !isState(frame)));
  return states;
}

it("the owner is killed", async () => {
  const room = await roomOf(victim);
  const [one, two] = [await enter(staying, room, "?_pk=one&tag=far"), await enter(staying, room, "?_pk=two")];
  one.send("remember this");
  expect(await ask(one, "add", 4)).toBe(4);
  for (const client of [one, two]) expect(await client.next(isState)).toMatchObject({ state: { n: 4 } });
  const pending = one.call("addSlowly", 60_000);
  await two.next(isState);
  await victim.kill();
  expect(await pending).toMatchObject({
    success: false,
    error: expect.stringContaining("outcome of the call is unknown") as unknown,
  });
  // Sent while there is no owner.
  expect(await ask(two, "where")).toBe(staying.pid);
  one.send("recall");
  expect(await one.next((frame) => frame.recalled !== undefined)).toEqual({ recalled: { value: "this" } });
  expect(await ask(one, "connected", "far")).toMatchObject([{ id: "one", tags: ["one", "far"] }]);
  expect(await events(one, "connect")).toEqual(["visitor", "one", "two"]);
  expect(await events(one, "close")).toEqual(["visitor 1005"]);
  // Both have seen 5, the last state that was durable: it is not sent again.
  expect(takeStates(two)).toEqual([]);
  expect(await ask(two, "add")).toBe(6);
  expect((await one.next((frame) => isState(frame) && frame.state.n === 6)).state.n).toBe(6);
  expect([one.closeCode, two.closeCode]).toEqual([undefined, undefined]);
  for (const client of [one, two]) client.close();
});

it("the node of the sockets is killed", async () => {
  const room = await roomOf(staying);
  const here = await enter(staying, room, "?_pk=here");
  const there = await enter(victim, room, "?_pk=there");
  await victim.kill();
  await there.closed();
  await expect.poll(() => events(here, "close")).toEqual(["visitor 1005", "there 1006"]);
  expect(await ask(here, "connected")).toMatchObject([{ id: "here" }]);
  here.close();
});

it("the owner is paused until another node has its instances, and continues", async () => {
  const room = await roomOf(victim);
  const there = await enter(staying, room, "?_pk=there");
  const here = await enter(victim, room, "?_pk=here");
  expect(await ask(here, "add", 1)).toBe(1);
  process.kill(victim.pid, "SIGSTOP");
  try {
    here.send({ type: "rpc", id: "late", method: "add", args: [10] });
    here.send("hello");
    // This call is with the paused node, which may run it or not.
    expect(await there.call("where")).toMatchObject({
      error: expect.stringContaining("outcome of the call is unknown") as unknown,
    });
    expect(await ask(there, "where")).toBe(staying.pid);
    expect(await ask(there, "add", 1)).toBe(2);
  } finally {
    process.kill(victim.pid, "SIGCONT");
  }
  // The calls that had arrived at the paused node run once, at the new owner.
  expect(await here.next((frame) => frame.id === "late")).toMatchObject({ success: true, result: 12 });
  expect(await here.next((frame) => frame.echo !== undefined)).toEqual({ echo: "hello" });
  await there.next((frame) => isState(frame) && frame.state.n === 12);
  expect(await ask(here, "where")).toBe(staying.pid);
  const states = takeStates(here);
  expect(states).toEqual(states.toSorted((a, b) => a - b));
  expect(states.at(-1)).toBe(12);
  expect(await events(there, "connect")).toEqual(["visitor", "there", "here"]);
  expect(await events(there, "close")).toEqual(["visitor 1005"]);
  for (const client of [here, there]) client.close();
});

it("the owner stops: its own sockets are closed with 1012, and the others follow the instance", async () => {
  const room = await roomOf(victim);
  const there = await enter(staying, room, "?_pk=there");
  const here = await enter(victim, room, "?_pk=here");
  there.send("remember this");
  let last = 0;
  let isDone = false;
  const calls = (async () => {
    while (!isDone) {
      const answer = await there.call("add");
      expect([answer.error, answer.result]).toEqual([undefined, last + 1]);
      last += 1;
    }
  })();
  expect(await victim.end("SIGTERM")).toBe(0);
  expect(await here.closed()).toBe(1012);
  expect(await ask(there, "where")).toBe(staying.pid);
  isDone = true;
  await calls;
  there.send("recall");
  expect(await there.next((frame) => frame.recalled !== undefined)).toEqual({ recalled: { value: "this" } });
  // Each state once.
  await there.next((frame) => isState(frame) && frame.state.n === last);
  const states = takeStates(there);
  expect([...states, last]).toEqual(Array.from({ length: last }, (_, i) => i + 1));
  expect(await events(there, "connect")).toEqual(["visitor", "there", "here"]);
  await expect.poll(() => events(there, "close")).toEqual(["visitor 1005", "here 1012"]);
  there.close();
});
