/** Workflows on objects of their own: steps, retries, sleeps, events, status; those of the published class; and kill -9 in the middle of a step. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { waitUntil } from "../support/wait-until.ts";
import { connectAgent } from "./support/agent-client.ts";
import { startWorker, type WorkerServer } from "./support/worker-server.ts";

let server: WorkerServer;
beforeAll(async () => {
  server = await startWorker("workflows/src/server.ts", {
    file: { agents: { access: "worker", idleTimeoutMs: 100 } },
  });
});
afterAll(() => server.remove());

/** Workflows of a test have names of their own in each try: a second try finds nothing of the first. */
let tries = 0;
beforeEach(() => {
  tries += 1;
});
const own = (name: string) => `${name}-${tries}`;

async function ask(path: string, body?: unknown): Promise<unknown> {
  const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  return (await fetch(server.url + path, init)).json();
}
const statusOf = async (id: string) => ((await ask(`/status?id=${id}`)) as { status?: string }).status;

test("steps, a retry, a sleep, a caught failure and an event lead to the output", async () => {
  const id = own("whole");
  expect(await ask(`/create?id=${id}`, { flaky: 2 })).toEqual({ id });
  await expect.poll(() => statusOf(id)).toBe("waiting");
  await ask(`/send?id=${id}`, { type: "other", payload: 1 });
  await ask(`/send?id=${id}`, { type: "go", payload: { text: "gone" } });
  await expect
    .poll(() => ask(`/status?id=${id}`))
    .toEqual({
      status: "complete",
      output: { first: { runs: 1 }, flaky: 3, caught: "never again", text: "gone" },
    });
});

test("an id is used once, unknown ids are refused, a batch skips what exists", async () => {
  const id = own("twice");
  await ask(`/create?id=${id}`, {});
  expect(await ask(`/create?id=${id}`, {})).toEqual({ error: `instance.already_exists: ${id}` });
  expect(await ask("/status?id=nobody")).toEqual({ error: "instance.not_found: nobody" });
  expect(await ask("/create?id=a%2Fb", {})).toMatchObject({
    error: expect.stringContaining("instance.invalid_id"),
  });
  expect(await ask(`/batch?id=${id}`)).toEqual([`${id}2`]);
});

test("an instance is followed to its end, goes on from a step, and is deleted", async () => {
  const id = own("followed");
  await ask(`/create?id=${id}`, {});
  const followed = ask(`/follow?id=${id}`, {
    filter: ["step_completed", "wait_completed", "workflow_completed"],
  });
  await ask(`/send?id=${id}`, { type: "go", payload: { text: "one" } });
  expect(await followed).toEqual([
    "step_completed first-1",
    "step_completed flaky-1",
    "wait_completed go-1",
    "workflow_completed",
  ]);
  await ask(`/do?id=${id}`, { action: "restart", args: [{ from: { name: "nap", type: "sleep" } }] });
  await ask(`/send?id=${id}`, { type: "go", payload: { text: "two" } });
  await expect
    .poll(() => ask(`/status?id=${id}`))
    .toMatchObject({ status: "complete", output: { first: { runs: 1 }, text: "two" } });
  await ask(`/do?id=${id}`, { action: "delete" });
  expect(await ask(`/status?id=${id}`)).toEqual({ error: `instance.not_found: ${id}` });
});

test("pause, resume, terminate and restart", async () => {
  const id = own("life");
  await ask(`/create?id=${id}`, { napMs: 400 });
  await ask(`/do?id=${id}`, { action: "pause" });
  await expect.poll(() => statusOf(id)).toBe("paused");
  await ask(`/send?id=${id}`, { type: "go", payload: { text: "early" } });
  expect(await statusOf(id)).toBe("paused");
  await ask(`/do?id=${id}`, { action: "resume" });
  await expect.poll(() => statusOf(id)).toBe("complete");
  expect(await ask(`/do?id=${id}`, { action: "terminate" })).toMatchObject({
    error: expect.stringContaining("complete"),
  });
  await ask(`/do?id=${id}`, { action: "restart" });
  await expect.poll(() => statusOf(id)).toBe("waiting");
  await ask(`/do?id=${id}`, { action: "terminate" });
  expect(await statusOf(id)).toBe("terminated");
});

describe("after one kill -9", () => {
  let client: ReturnType<typeof connectAgent<{ log: string[] }>>;
  const log = () => client.state?.log;
  const call = (method: string, ...args: unknown[]) => client.call(method, ...args) as Promise<string>;
  let approved: string;

  beforeAll(async () => {
    await ask("/create?id=killed", { hold: true });
    const marks = () => ask("/marks") as Promise<Record<string, number>>;
    await waitUntil(marks, (made) => made["killed-hold"] === 1);
    client = connectAgent<{ log: string[] }>(server, "Desk", "clerk");
    await client.ready;
    approved = await call("order", "chair");
    await waitUntil(log, (lines) => lines?.at(-1) === "progress check");
    // The last one, because it sleeps for a moment only.
    await ask("/create?id=sleeper", { napMs: 1500 });
    await waitUntil(
      () => statusOf("sleeper"),
      (status) => status === "waiting",
    );
    await ask("/send?id=sleeper", { type: "go", payload: { text: "slept" } });
    server = await server.killAndRestart();
  });
  afterAll(() => client.close());

  test("kill -9 in the middle of a step: finished steps do not run again, the interrupted one does", async () => {
    await ask("/send?id=killed", { type: "go", payload: { text: "after" } });
    await expect
      .poll(() => ask("/status?id=killed"))
      .toMatchObject({ status: "complete", output: { text: "after" } });
    expect(await ask("/marks")).toMatchObject({ "killed-first": 1, "killed-hold": 2 });
  });

  test("kill -9 while it sleeps: it wakes by itself", async () => {
    await expect
      .poll(() => ask("/status?id=sleeper"))
      .toMatchObject({ status: "complete", output: { text: "slept" } });
  });

  test("an agent starts a workflow, sees its progress, and approves or rejects it, also after a kill", async () => {
    await client.ready;
    await call("decide", approved, "ann");
    await expect.poll(log).toEqual(expect.arrayContaining(["approved by ann", "complete 5"]));
    await expect.poll(() => call("info", approved)).toBe("complete");
    const rejected = await call("order", "sofa");
    await call("decide", rejected, null);
    await expect.poll(log).toContain("error too dear");
  });
});
