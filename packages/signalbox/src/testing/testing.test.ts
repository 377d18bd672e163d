/** Agents under the harness that users have for their tests: one service for most of them. */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { join } from "node:path";
import type { TicketAgent } from "../../../../test/fixtures/tested-agents.ts";
import { startAgents, type TestAgent, type TestAgents } from "./index.ts";

const FILE = join(import.meta.dirname, "../../../../test/fixtures/tested-agents.ts");
const START = Date.parse("2030-01-01T00:00:00.000Z");
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

let agents: TestAgents;
let count = 0;

beforeAll(async () => {
  agents = await startAgents({
    agents: [FILE],
    config: { webhooks: { sources: { github: { agent: "ticket-agent" } } } },
    environment: { COLOUR: "green" },
    now: START,
  });
});

afterEach(() => {
  expect(agents.takeFailures()).toEqual([]);
});

afterAll(() => agents.close());

function fresh(): TestAgent<TicketAgent> {
  count += 1;
  return agents.get<TicketAgent>("TicketAgent", `ticket-${count}`);
}

it("methods, state, tables and requests of an instance", async () => {
  const ticket = fresh();
  expect(await ticket.call("open", "first")).toBe(1);
  expect(await ticket.stub.open("second")).toBe(2);
  expect(await ticket.state()).toEqual({ open: 2, reminders: [], lastType: null });
  expect(await ticket.sql<{ title: string }>("SELECT title FROM ticket ORDER BY id")).toEqual([
    { title: "first" },
    { title: "second" },
  ]);
  expect(await (await ticket.fetch("/deep/path")).json()).toMatchObject({ open: 2 });
  expect(await ticket.call("variable", "COLOUR")).toBe("green");
  // @ts-expect-error -- no such method
  await expect(ticket.call("close")).rejects.toThrow();
  // @ts-expect-error -- the title is a text
  void (() => ticket.call("open", 1));
});

it("dates in agents are those of the clock, and those of the test are not", async () => {
  const ticket = fresh();
  const now = new Date(agents.now).toISOString();
  expect(await ticket.call("times")).toEqual([now, now]);
  expect(Math.abs(Date.now() - agents.now)).toBeGreaterThan(DAY);
  expect(new Date(0) instanceof Date && structuredClone(new Date(0)) instanceof Date).toBe(true);
});

it("schedules run at their times while the clock is moved", async () => {
  const ticket = fresh();
  const start = agents.now;
  await ticket.call("remindEvery", 60);
  await ticket.call("remindIn", 90);
  expect(await ticket.schedules()).toHaveLength(2);
  await agents.advance(3 * MINUTE);
  const { reminders } = await ticket.state();
  expect(reminders.map((at) => (Date.parse(at) - start) / 1000)).toEqual([60, 90, 120, 180]);
  expect(agents.now).toBe(start + 3 * MINUTE);
  await ticket.destroy();
  await agents.advance(DAY);
});

it("a failure of work that nobody waits for fails the test, with its own stack", async () => {
  const ticket = fresh();
  await ticket.call("breakLater", 2);
  const failure = await agents.idle().catch((error: unknown) => error);
  expect(failure).toMatchObject({ message: expect.stringContaining("the queue item is broken") });
  const { stack } = (failure as Error).cause as Error;
  expect(stack).toMatch(/failing-helper\.ts:10:9\)?\n.*breakNow.*tested-agents\.ts:69:5/);
  expect(await ticket.queue()).toMatchObject([{ callback: "breakNow", attempts: 1 }]);
  await expect(agents.advance(MINUTE)).rejects.toThrow("the queue item is broken");
  expect(await ticket.queue()).toEqual([]);
  expect(await ticket.deadLetters()).toMatchObject([{ callback: "breakNow", attempts: 2 }]);
  expect(await ticket.replayDeadLetters()).toBe(1);
  await agents.idle().catch(() => undefined);
  await agents.advance(MINUTE).catch(() => undefined);
});

it("a call that the service refuses does not hide a failure of the queue", async () => {
  const ticket = fresh();
  await ticket.call("breakLater", 1);
  while ((await ticket.queue()).length > 0);
  // @ts-expect-error -- no such method
  await expect(ticket.call("close")).rejects.not.toHaveProperty("cause");
  await expect(agents.idle()).rejects.toThrow("the queue item is broken");
});

it("a failed call has the agent's error as its cause", async () => {
  const error = await fresh()
    .call("fail")
    .catch((caught: unknown) => caught);
  expect((error as Error).cause).toMatchObject({ message: "the method is broken" });
});

it("a value without a text that a method throws is a failure like any other", async () => {
  const ticket = fresh();
  await expect(ticket.call("failOddly")).rejects.toThrow();
  expect(await ticket.call("open", "next")).toBe(1);
});

it("events with and without a source", async () => {
  const ticket = agents.get<TicketAgent>("ticket-agent", "acme-widgets");
  const answer = await agents.webhook("github", { entity: "acme/widgets", type: "issues", payload: {} });
  expect(answer.status).toBe(200);
  expect(await ticket.state()).toMatchObject({ lastType: "issues" });
  expect((await agents.webhook("github", { entity: "acme/widgets", secret: "another" })).status).toBe(401);
  expect(await ticket.deliver({ type: "opened", id: "one" })).toBe("processed");
  expect(await ticket.deliver({ type: "closed", id: "one" })).toBe("duplicate");
  expect(await ticket.state()).toMatchObject({ lastType: "opened" });
  await expect(ticket.deliver({ type: "broken" })).rejects.toThrow("the tracker is down");
  expect((await agents.webhook("github", { entity: "acme/widgets", type: "broken" })).status).toBe(500);
  await expect(agents.idle()).rejects.toThrow("the tracker is down");
  await expect(agents.webhook("gitub")).rejects.toThrow('did you mean "github"?');
});

it("a connection has every state and message when the agents are idle", async () => {
  const ticket = fresh();
  const connection = await ticket.connect();
  await ticket.call("open", "a");
  await ticket.call("open", "b");
  await ticket.call("say", "hello");
  await agents.idle();
  expect(connection.states.map(({ open }) => open)).toEqual([0, 1, 2]);
  expect(connection.messages).toEqual(["hello"]);
  const third = connection.untilState(({ open }) => open === 3);
  await ticket.call("open", "c");
  expect(await third).toMatchObject({ open: 3 });
  await expect(connection.untilState(({ open }) => open === 9, 1)).rejects.toThrow(/received: .*"open":3/);
  await connection[Symbol.asyncDispose]();
});

it("a restart and a crash keep what is stored, and nothing else", async () => {
  const ticket = fresh();
  await ticket.call("open", "kept");
  await ticket.call("remindIn", 60);
  expect(await ticket.call("callsInMemory")).toBe(1);
  await agents.restart();
  expect(await ticket.call("callsInMemory")).toBe(0);
  await ticket.call("open", "kept, too");
  await agents.crash();
  expect(await ticket.state()).toMatchObject({ open: 2 });
  await agents.advance(MINUTE);
  expect((await ticket.state()).reminders).toHaveLength(1);
});
