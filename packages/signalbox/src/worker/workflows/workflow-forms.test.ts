/** Forms of workflows: rollbacks, restarts from a step, delays that are functions, streams, the history, removal. */
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { waitUntil } from "../../../../../test/support/wait-until.ts";
import type { ObjectNamespace } from "../../agents/index.ts";
import { NonRetryableError } from "../modules/workflows-module.ts";
import { WorkflowBinding } from "./workflow-binding.ts";
import { WorkflowSubscription } from "./workflow-history.ts";
import { createWorkflowClass, type WorkflowEvent, type WorkflowObject } from "./workflow-object.ts";
import type { WorkflowStep } from "./workflow-step.ts";

type Program = (event: WorkflowEvent, step: WorkflowStep) => Promise<unknown>;

beforeEach(() => vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => vi.useRealTimers());

/** An instance whose alarm is run by hand; its database outlives the object. */
class Instance {
  readonly #database = new DatabaseSync(":memory:");
  readonly #program: Program;
  alarmAt: number | null = null;
  object: WorkflowObject;

  constructor(program: Program) {
    this.#program = program;
    this.object = this.#open();
  }

  #open(): WorkflowObject {
    const database = this.#database;
    const storage = {
      sql: {
        exec: (query: string, ...values: unknown[]) => {
          const rows = database.prepare(query).all(...(values as string[]));
          return { toArray: () => rows };
        },
      },
      transactionSync: <T>(work: () => T) => work(),
      setAlarm: async (time: number) => {
        this.alarmAt = time;
      },
      deleteAll: async () => {
        for (const name of ["workflow", "step", "event", "history"])
          database.exec(`DROP TABLE IF EXISTS ${name}`);
        this.alarmAt = null;
      },
      sync: async () => undefined,
    };
    const ObjectClass = createWorkflowClass({ name: "Test", open: () => ({ run: this.#program }) });
    return new ObjectClass({ storage }, {});
  }

  async settle(): Promise<void> {
    while (this.alarmAt !== null && this.alarmAt <= Date.now()) {
      this.alarmAt = null;
      await this.object.alarm();
    }
  }

  /** The process has ended; another one runs what is due. */
  crash(): void {
    this.object = this.#open();
    this.alarmAt = Date.now();
  }

  events(): Promise<string[]> {
    return this.object
      .history(0)
      .then(({ events }) => events.map(({ type, stepName }) => [type, stepName].filter(Boolean).join(" ")));
  }
}

async function start(program: Program): Promise<Instance> {
  const instance = new Instance(program);
  await instance.object.create("w1", { n: 1 });
  await instance.settle();
  return instance;
}

test("when a workflow fails, the handlers of its steps run in reverse order, with output, error and context", async () => {
  const undone: unknown[] = [];
  const rollback = (input: { ctx: { step: object }; output: unknown; error: Error }) =>
    void undone.push([input.ctx.step, input.output, input.error.message]);
  const instance = await start(async (_event, step) => {
    await step.do("reserve", async () => "seat 1", { rollback });
    await step.do("note", async () => "no handler");
    await step.do("pay", { retries: { limit: 0 } }, async () => ({ paid: 3 }), { rollback });
    await step.do("ship", { retries: { limit: 0 } }, async () => Promise.reject(new Error("no ship")), {
      rollback,
    });
  });
  expect(await instance.object.status()).toEqual({
    status: "errored",
    error: { name: "Error", message: "no ship" },
    rollback: { outcome: "complete" },
  });
  expect(undone).toEqual([
    [{ name: "ship", count: 1 }, undefined, "no ship"],
    [{ name: "pay", count: 1 }, { paid: 3 }, "no ship"],
    [{ name: "reserve", count: 1 }, "seat 1", "no ship"],
  ]);
});

test("a rollback that fails is tried again and reported, and the others run nevertheless", async () => {
  let tries = 0;
  const undone: string[] = [];
  const instance = await start(async (_event, step) => {
    await step.do("first", async () => 1, { rollback: async () => void undone.push("first") });
    await step.do("second", async () => 2, {
      rollback: async () => {
        tries += 1;
        throw new Error("cannot be undone");
      },
      rollbackConfig: { retries: { limit: 1, delay: "1 minute", backoff: "constant" } },
    });
    throw new Error("over");
  });
  expect(tries).toBe(1);
  expect(await instance.object.status()).toEqual({ status: "rollingBack" });
  await expect(instance.object.pause()).rejects.toThrow("that is rollingBack cannot be paused");
  vi.setSystemTime(Date.now() + 60_000);
  // A crash in the middle repeats neither steps nor handlers that have ended.
  instance.crash();
  await instance.settle();
  expect(tries).toBe(2);
  expect(undone).toEqual(["first"]);
  expect(await instance.object.status()).toMatchObject({
    status: "errored",
    error: { message: "over" },
    rollback: { outcome: "failed", error: { message: "cannot be undone" } },
  });
});

test("terminate undoes the steps of an instance that waits, also in another process", async () => {
  const undone: unknown[] = [];
  let runs = 0;
  const instance = await start(async (_event, step) => {
    await step.do("a", async () => (runs += 1), {
      rollback: async ({ output }: { output: unknown }) => void undone.push(output),
    });
    await step.sleep("long", "1 day");
    await step.do("never", async () => (runs += 1), { rollback: async () => void undone.push("never") });
  });
  await instance.object.terminate(true);
  expect(await instance.object.status()).toEqual({ status: "rollingBack" });
  instance.crash();
  await instance.settle();
  expect(await instance.object.status()).toEqual({
    status: "terminated",
    rollback: { outcome: "complete" },
  });
  expect([runs, undone]).toEqual([1, [1]]);
});

test("an instance is rolling back from its failure to its end, and can be terminated or started again meanwhile", async () => {
  const seen: unknown[] = [];
  let isBlocked = true;
  const config = {
    rollbackConfig: { retries: { limit: 5, delay: "1 minute", backoff: "constant" as const } },
  };
  const program: Program = async (event, step) => {
    await step.do("a", async () => 1, {
      rollback: async () => {
        seen.push((await instance.object.status())?.status);
        if (isBlocked) throw new Error("not yet");
      },
      ...config,
    });
    throw new Error(`over ${(event.payload as { n: number }).n}`);
  };
  const instance = new Instance(program);
  await instance.object.create("w1", { n: 1 });
  await instance.settle();
  expect(await instance.object.status()).toEqual({ status: "rollingBack" });
  // Another process goes on with it, and it is not running in between.
  instance.crash();
  await instance.settle();
  expect([await instance.object.status(), seen]).toEqual([{ status: "rollingBack" }, ["rollingBack"]]);
  await instance.object.restart();
  await instance.settle();
  expect([await instance.object.status(), seen.length]).toEqual([{ status: "rollingBack" }, 2]);
  isBlocked = false;
  await instance.object.terminate();
  expect(await instance.object.status()).toEqual({ status: "terminated" });
  vi.setSystemTime(Date.now() + 60_000);
  await instance.settle();
  expect(seen.length).toBe(2);
  await expect(instance.object.resume()).rejects.toThrow("that is terminated cannot be resumed");
});

test("a restart from a step keeps the results of the steps before it", async () => {
  const ran: string[] = [];
  const instance = await start(async (_event, step) => {
    for (const name of ["a", "b", "b", "c"]) await step.do(name, async () => void ran.push(name));
    await step.sleep("b", 1);
    return ran.length;
  });
  await vi.waitFor(() => expect(ran).toEqual(["a", "b", "b", "c"]));
  vi.setSystemTime(Date.now() + 1000);
  await instance.settle();
  expect(await instance.object.status()).toEqual({ status: "complete", output: 4 });
  await instance.object.restart({ name: "b", count: 2, type: "do" });
  await instance.settle();
  vi.setSystemTime(Date.now() + 1000);
  instance.alarmAt = Date.now();
  await instance.settle();
  expect(ran).toEqual(["a", "b", "b", "c", "b", "c"]);
  await expect(instance.object.restart({ name: "b", count: 3 })).rejects.toThrow("step_not_found");
  await expect(instance.object.restart({ name: "a", type: "sleep" })).rejects.toThrow("step_not_found");
});

test("a delay can be a function of the attempt and the error", async () => {
  const asked: unknown[] = [];
  const delay = async ({ ctx, error }: { ctx: { attempt: number; config: object }; error: Error }) => {
    asked.push([ctx.attempt, error.message, ctx.config]);
    return ctx.attempt === 1 ? "10 seconds" : 1000;
  };
  const instance = await start(async (_event, step) =>
    step.do(
      "flaky",
      { retries: { limit: 2, delay, backoff: "constant" } },
      async ({ attempt }: { attempt: number }) => {
        if (attempt < 3) throw new Error(`attempt ${attempt}`);
        return attempt;
      },
    ),
  );
  const config = { retries: { limit: 2, backoff: "constant" }, timeout: 600_000 };
  expect(instance.alarmAt).toBe(Date.now() + 10_000);
  for (const waited of [10_000, 1000]) {
    vi.setSystemTime(Date.now() + waited);
    await instance.settle();
  }
  expect(await instance.object.status()).toEqual({ status: "complete", output: 3 });
  expect(asked).toEqual([
    [1, "attempt 1", config],
    [2, "attempt 2", config],
  ]);
  const { events } = await instance.object.history(0);
  expect(events.find(({ type }) => type === "step_started")).toMatchObject({
    config: { retries: { ...config.retries, delay: "[dynamic]" }, timeout: 600_000 },
  });
});

test("a stream that a step returns is stored, and a replay reads it again", async () => {
  const texts: string[] = [];
  let runs = 0;
  const instance = await start(async (_event, step) => {
    const stream = (await step.do("stream", async () => {
      runs += 1;
      return new Response("many bytes").body;
    })) as ReadableStream;
    texts.push(await new Response(stream).text());
    await step.waitForEvent("go", { type: "go" });
  });
  instance.crash();
  await instance.settle();
  expect([runs, texts]).toEqual([1, ["many bytes", "many bytes"]]);
  const failing = await start(async (_event, step) =>
    step.do("numbers", async () => new ReadableStream({ start: (controller) => controller.enqueue(1) })),
  );
  expect(await failing.object.status()).toMatchObject({
    error: { message: "a stream that a step returns has bytes or text" },
  });
});

test("the history has every step, and hides the output of sensitive ones", async () => {
  const instance = await start(async (event, step) => {
    await step.do("open", async () => 1);
    await step.do("secret", { sensitive: "output" }, async () => "hidden");
    await step.do("bad", async () => Promise.reject(new NonRetryableError("no"))).catch(() => undefined);
    return (event.payload as { n: number }).n;
  });
  expect(await instance.events()).toEqual([
    "workflow_queued",
    "workflow_started",
    "workflow_running",
    "step_started open-1",
    "attempt_started open-1",
    "attempt_completed open-1",
    "step_completed open-1",
    "step_started secret-1",
    "attempt_started secret-1",
    "attempt_completed secret-1",
    "step_completed secret-1",
    "step_started bad-1",
    "attempt_started bad-1",
    "attempt_errored bad-1",
    "step_errored bad-1",
    "workflow_completed",
  ]);
  const { events, isOver } = await instance.object.history(0);
  expect(isOver).toBe(true);
  expect(events.filter(({ type }) => type === "step_completed").map(({ output }) => output)).toEqual([
    1,
    undefined,
  ]);
  expect(events[1]).toMatchObject({ instanceId: "w1", eventId: 2, params: { n: 1 } });
  expect(events.at(-1)).toMatchObject({ output: 1 });
});

test("a subscription receives what happens later, filtered, and ends with the instance", async () => {
  const instance = await start(async (_event, step) => {
    await step.waitForEvent("go", { type: "go" });
    await step.do("work", async () => 7);
  });
  const read = (cursor: number) => instance.object.history(cursor);
  const subscription = new WorkflowSubscription(read, { filter: ["step_completed", "wait_completed"] });
  const first = subscription.next();
  await instance.object.sendEvent("go", null);
  await instance.settle();
  expect((await first).value).toMatchObject({ type: "wait_completed", stepName: "go-1" });
  const second = await subscription.next();
  expect(second.value).toMatchObject({ type: "step_completed", output: 7 });
  expect(await subscription.next()).toEqual({ value: undefined, done: true });
  const rest = new WorkflowSubscription(read, { cursor: second.value?.eventId ?? 0 });
  expect((await rest.next()).value?.type).toBe("workflow_completed");
});

test("an instance that is deleted is forgotten, whatever it does, and its id is free", async () => {
  let runs = 0;
  const instance = await start(async (_event, step) => {
    await step.do("a", async () => (runs += 1));
    await step.sleep("long", "1 day");
  });
  expect(await instance.object.delete()).toBe(true);
  expect(await instance.object.status()).toBeNull();
  expect(await instance.object.delete()).toBe(false);
  expect(await instance.object.create("w1", {})).toBe(true);
  await instance.settle();
  await waitUntil(
    () => runs,
    (count) => count === 2,
  );
});

test("an instance is kept as long as its creator says", async () => {
  const instance = new Instance(async () => "done");
  await instance.object.create("w1", {}, null, { successMs: 1000, errorMs: null });
  await instance.settle();
  expect(await instance.object.status()).toEqual({ status: "complete", output: "done" });
  vi.setSystemTime(Date.now() + 1000);
  await instance.settle();
  expect(await instance.object.status()).toBeNull();
});

/** A binding whose instances are here. */
function bind(program: Program) {
  const instances = new Map<string, Instance>();
  const getByName = (id: string) => {
    const known = instances.get(id) ?? new Instance(program);
    instances.set(id, known);
    return known.object;
  };
  return { binding: new WorkflowBinding({ getByName } as unknown as ObjectNamespace), instances };
}

test("a due time of a schedule creates one instance, which sees the schedule", async () => {
  const seen: unknown[] = [];
  const { binding, instances } = bind(async (event) => void seen.push(event.schedule));
  const schedule = { cron: "0 * * * *", scheduledTime: 3_600_000 };
  await binding.createScheduled(schedule);
  await binding.createScheduled(schedule);
  for (const instance of instances.values()) await instance.settle();
  expect(seen).toEqual([schedule]);
});

test("batches report what was created and what was not, and so do deletions", async () => {
  const { binding } = bind(async () => undefined);
  const same = await binding.createBatch({ count: 2, params: { n: 1 } });
  expect([same.created.length, same.errors]).toEqual([2, []]);
  await binding.create({ id: "known" });
  const { created, errors } = await binding.createBatch({
    instances: [{ id: "known" }, { id: "a/b" }, { id: "new", retention: { successRetention: "1 day" } }],
  });
  expect(created.map(({ id }) => id)).toEqual(["new"]);
  expect(errors).toEqual([
    { index: 0, id: "known", code: 409, message: "instance.already_exists: known" },
    { index: 1, id: "a/b", code: 400, message: expect.stringContaining("instance.invalid_id") },
  ]);
  expect((await binding.createBatch([{ id: "known" }, { id: "other" }])).map(({ id }) => id)).toEqual([
    "other",
  ]);
  await expect(binding.createBatch({ count: 0 })).rejects.toThrow("createBatch() takes");
  // An entry for each place, also of an id that is there twice.
  expect(await binding.deleteBatch(["known", "nobody", "known"])).toEqual({
    deleted: [{ id: "known" }, { id: "known" }],
    errors: [{ id: "nobody", code: 404, message: "instance.not_found: nobody" }],
  });
  await expect(binding.get("known")).rejects.toThrow("instance.not_found");
});
