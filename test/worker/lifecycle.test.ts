/** `Lifecycle` of the published package on plain objects, with its capabilities: tasks, schedules, queue, streams, sessions, state and routing. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startWorker, type WorkerServer } from "./support/worker-server.ts";

let server: WorkerServer;
beforeAll(async () => {
  server = await startWorker("lifecycle/src/server.ts");
});
afterAll(() => server.remove());

async function ask(name: string, path: string): Promise<unknown> {
  const response = await fetch(`${server.url}/agents/desk/${name}/${path}`);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
  return JSON.parse(text);
}
const logOf = async (name: string) => ((await ask(name, "log")) as { log: string[] }).log;

test("routing finds the object, which starts once", async () => {
  expect(await ask("routed", "log")).toEqual({ name: "routed", log: ["started"] });
  expect(await logOf("routed")).toEqual(["started"]);
});

test("a task runs its steps, sleeps on the alarm of the object, and survives a crash", async () => {
  const { runId } = (await ask("tasks", "task")) as { runId: string };
  server = await server.killAndRestart();
  await expect
    .poll(() => ask("tasks", `task-of?id=${runId}`))
    .toMatchObject({ state: "completed", result: "about tides, published" });
});

test("schedules and the queue call back", async () => {
  expect(await ask("work", "remind")).toHaveLength(1);
  await ask("work", "push");
  await expect
    .poll(async () => (await logOf("work")).toSorted())
    .toEqual(["reminded of tea", "started", "worked on 1", "worked on 2", "worked on 3"]);
});

test("streams, sessions and state are stored", async () => {
  await ask("stored", "write");
  await ask("stored", "say?id=one");
  expect(await ask("stored", "count")).toEqual({ count: 1 });
  server = await server.killAndRestart();
  expect(await ask("stored", "read")).toMatchObject([{ chunk: "a" }, { chunk: "b" }, { chunk: "c" }]);
  expect(await ask("stored", "say?id=two")).toEqual(["one", "two"]);
  expect(await ask("stored", "count")).toEqual({ count: 2 });
});
