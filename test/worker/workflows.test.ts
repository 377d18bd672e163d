/** Workflows on objects of their own: steps, retries, sleeps, events, status; those of the published class; and kill -9 in the middle of a step. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { connectAgent } from "./support/agent-client.ts";
import { startWorker, type WorkerServer } from "./support/worker-server.ts";

let server: WorkerServer;
beforeAll(async () => {
  server = await startWorker("workflows/src/server.ts", {
    file: { agents: { access: "worker", idleTimeoutMs: 100 } },
  });
});
afterAll(() => server.remove());

async function ask(path: string, body?: unknown): Promise<unknown> {
  const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  return (await fetch(server.url + path, init)).json();
}
const statusOf = async (id: string) => ((await ask(`/status?id=${id}`)) as { status?: string }).status;

test("steps, a retry, a sleep, a caught failure and an event lead to the output", async () => {
  expect(await ask("/create?id=whole", { flaky: 2 })).toEqual({ id: "whole" });
  await expect.poll(() => statusOf("whole")).toBe("waiting");
  await ask("/send?id=whole", { type: "other", payload: 1 });
  await ask("/send?id=whole", { type: "go", payload: { text: "gone" } });
  await expect
    .poll(() => ask("/status?id=whole"))
    .toEqual({
      status: "complete",
      output: { first: { runs: 1 }, flaky: 3, caught: "never again", text: "gone" },
    });
});

test("an id is used once, unknown ids are refused, a batch skips what exists", async () => {
  await ask("/create?id=twice", {});
  expect(await ask("/create?id=twice", {})).toEqual({ error: "instance.already_exists: twice" });
  expect(await ask("/status?id=nobody")).toEqual({ error: "instance.not_found: nobody" });
  expect(await ask("/create?id=a%2Fb", {})).toMatchObject({
    error: expect.stringContaining("instance.invalid_id"),
  });
  expect(await ask("/batch?id=twice")).toEqual(["twice2"]);
});

test("pause, resume, terminate and restart", async () => {
  await ask("/create?id=life", { napMs: 400 });
  await ask("/do?id=life", { action: "pause" });
  await expect.poll(() => statusOf("life")).toBe("paused");
  await ask("/send?id=life", { type: "go", payload: { text: "early" } });
  expect(await statusOf("life")).toBe("paused");
  await ask("/do?id=life", { action: "resume" });
  await expect.poll(() => statusOf("life")).toBe("complete");
  expect(await ask("/do?id=life", { action: "terminate" })).toMatchObject({
    error: expect.stringContaining("complete"),
  });
  await ask("/do?id=life", { action: "restart" });
  await expect.poll(() => statusOf("life")).toBe("waiting");
  await ask("/do?id=life", { action: "terminate" });
  expect(await statusOf("life")).toBe("terminated");
});

test("kill -9 in the middle of a step: finished steps do not run again, the interrupted one does", async () => {
  await ask("/create?id=killed", { hold: true });
  await expect.poll(() => ask("/marks")).toMatchObject({ "killed-first": 1, "killed-hold": 1 });
  server = await server.killAndRestart();
  await ask("/send?id=killed", { type: "go", payload: { text: "after" } });
  await expect
    .poll(() => ask("/status?id=killed"))
    .toMatchObject({ status: "complete", output: { text: "after" } });
  expect(await ask("/marks")).toMatchObject({ "killed-first": 1, "killed-hold": 2 });
});

test("kill -9 while it sleeps: it wakes by itself", async () => {
  await ask("/create?id=sleeper", { napMs: 1500 });
  await expect.poll(() => statusOf("sleeper")).toBe("waiting");
  await ask("/send?id=sleeper", { type: "go", payload: { text: "slept" } });
  server = await server.killAndRestart();
  await expect
    .poll(() => ask("/status?id=sleeper"))
    .toMatchObject({ status: "complete", output: { text: "slept" } });
});

test("an agent starts a workflow, sees its progress, and approves or rejects it, also after a kill", async () => {
  const client = connectAgent<{ log: string[] }>(server, "Desk", "clerk");
  await client.ready;
  const log = () => client.state?.log;
  const call = (method: string, ...args: unknown[]) => client.call(method, ...args) as Promise<string>;
  const approved = await call("order", "chair");
  await expect.poll(log).toEqual(["progress check"]);
  server = await server.killAndRestart();
  await client.ready;
  await call("decide", approved, "ann");
  await expect.poll(log).toEqual(expect.arrayContaining(["approved by ann", "complete 5"]));
  await expect.poll(() => call("info", approved)).toBe("complete");
  const rejected = await call("order", "sofa");
  await call("decide", rejected, null);
  await expect.poll(log).toContain("error too dear");
  client.close();
});
