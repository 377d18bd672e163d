/** The engine of workflows against a database of its own; the alarm is run by hand, and a crash forgets everything but the database. */
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { NonRetryableError } from "../modules/workflows-module.ts";
import { createWorkflowClass, type WorkflowEvent, type WorkflowObject } from "./workflow-object.ts";
import type { WorkflowStep } from "./workflow-step.ts";

type Program = (event: WorkflowEvent, step: WorkflowStep) => Promise<unknown>;

/** One instance on a database that outlives the object. */
class Host {
  readonly #database = new DatabaseSync(":memory:");
  readonly #program: Program;
  alarmAt: number | null = null;
  /** Writes fail while it returns true. */
  isFull: (query: string) => boolean = () => false;
  /** The next syncs fail with these errors. */
  readonly syncFailures: Error[] = [];
  object: WorkflowObject;

  constructor(program: Program) {
    this.#program = program;
    this.object = this.#open();
  }

  #open(): WorkflowObject {
    const database = this.#database;
    const life = { isGone: false };
    this.#life.isGone = true;
    this.#life = life;
    const alive = () => {
      if (life.isGone) throw new Error("this object left memory");
    };
    const storage = {
      sql: {
        exec: (query: string, ...values: unknown[]) => {
          alive();
          if (!query.startsWith("SELECT") && this.isFull(query)) throw new Error("the disk is full");
          const rows = database.prepare(query).all(...(values as string[]));
          return { toArray: () => rows };
        },
      },
      transactionSync: <T>(work: () => T) => {
        database.exec("BEGIN");
        try {
          const result = work();
          database.exec("COMMIT");
          return result;
        } catch (error) {
          database.exec("ROLLBACK");
          throw error;
        }
      },
      setAlarm: async (time: number) => {
        alive();
        if (this.isFull("alarm")) throw new Error("the disk is full");
        this.alarmAt = time;
      },
      deleteAll: async () => {
        alive();
        for (const name of ["workflow", "step", "event", "history"])
          database.exec(`DROP TABLE IF EXISTS ${name}`);
        this.alarmAt = null;
      },
      sync: async () => {
        const failure = this.syncFailures.shift();
        if (failure !== undefined) throw failure;
      },
    };
    const ObjectClass = createWorkflowClass({ name: "Test", open: () => ({ run: this.#program }) });
    return new ObjectClass({ storage }, {});
  }

  #life = { isGone: false };

  /** Runs the alarm when it is due, as often as it is set for now. */
  async settle(): Promise<void> {
    while (this.alarmAt !== null && this.alarmAt <= Date.now()) {
      this.alarmAt = null;
      await this.object.alarm();
    }
  }

  crash(): void {
    this.object = this.#open();
    this.alarmAt = Date.now();
  }

  async status(): Promise<unknown> {
    const status = await this.object.status();
    return status?.status;
  }
}

beforeEach(() => vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => vi.useRealTimers());

async function start(program: Program, params: unknown = {}): Promise<Host> {
  const host = new Host(program);
  await host.object.create("w1", params);
  await host.settle();
  return host;
}

test("steps run once in order, and the result of run is the output", async () => {
  const ran: string[] = [];
  const host = await start(
    async (event, step) => {
      const a = (await step.do(
        "a",
        async () => (ran.push("a"), (event.payload as { n: number }).n + 1),
      )) as number;
      const b = await step.do("b", async () => (ran.push("b"), new Map([["a", a]])));
      return { b, id: event.instanceId };
    },
    { n: 1 },
  );
  expect(await host.object.status()).toEqual({
    status: "complete",
    output: { b: new Map([["a", 2]]), id: "w1" },
  });
  expect(ran).toEqual(["a", "b"]);
});

test("after a crash finished steps are not repeated, and the step that was running is", async () => {
  const ran: string[] = [];
  let gate = Promise.withResolvers<void>();
  const program: Program = async (_event, step) => {
    await step.do("first", async () => ran.push("first"));
    await step.do("second", async () => {
      ran.push("second");
      await gate.promise;
    });
    return step.do("third", async () => ran.push("third"));
  };
  const host = new Host(program);
  await host.object.create("w1", {});
  host.alarmAt = null;
  // The object that left memory fails; its successor goes on.
  host.object.alarm().catch(() => undefined);
  await expect.poll(() => ran).toEqual(["first", "second"]);
  host.crash();
  gate.resolve();
  gate = Promise.withResolvers<void>();
  gate.resolve();
  await host.settle();
  expect(await host.status()).toBe("complete");
  expect(ran).toEqual(["first", "second", "second", "third"]);
});

test("a failing step is retried with its pauses, across crashes, and then fails the program with its error", async () => {
  const attempts: number[] = [];
  const host = await start(async (_event, step) => {
    await step.do(
      "flaky",
      { retries: { limit: 2, delay: "10 seconds", backoff: "exponential" } },
      async (context: { attempt: number }) => {
        attempts.push(context.attempt);
        throw new RangeError(`no ${context.attempt}`);
      },
    );
  });
  expect(attempts).toEqual([1]);
  expect(host.alarmAt).toBe(Date.now() + 10_000);
  host.crash();
  await host.settle();
  expect(attempts).toEqual([1]);
  vi.setSystemTime(Date.now() + 10_000);
  await host.settle();
  expect(attempts).toEqual([1, 2]);
  expect(host.alarmAt).toBe(Date.now() + 20_000);
  vi.setSystemTime(Date.now() + 20_000);
  await host.settle();
  expect(attempts).toEqual([1, 2, 3]);
  expect(await host.object.status()).toEqual({
    status: "errored",
    error: { name: "RangeError", message: "no 3" },
  });
});

test("an error that is not retryable, and a result that cannot be stored, fail at once", async () => {
  const host = await start(async (_event, step) => {
    const caught: string[] = [];
    await step
      .do("a", async () => Promise.reject(new NonRetryableError("final")))
      .catch((e: Error) => caught.push(e.message));
    await step.do("b", async () => () => 1).catch((e: Error) => caught.push(e.name));
    return caught;
  });
  expect(await host.object.status()).toMatchObject({
    status: "complete",
    output: ["final", "DataCloneError"],
  });
});

test("a step that takes too long fails", async () => {
  const host = await start(async (_event, step) => {
    await step.do("slow", { timeout: 10, retries: { limit: 0 } }, () => new Promise(() => undefined));
  });
  expect(await host.object.status()).toMatchObject({
    status: "errored",
    error: { name: "WorkflowTimeoutError" },
  });
});

test("sleeps end at their time, also when the object left memory meanwhile", async () => {
  const host = await start(async (_event, step) => {
    await step.sleep("nap", "1 hour");
    await step.sleepUntil("until", new Date(Date.now() + 60_000));
    return "awake";
  });
  expect(await host.status()).toBe("waiting");
  expect(host.alarmAt).toBe(Date.now() + 3_600_000);
  host.crash();
  await host.settle();
  expect(await host.status()).toBe("waiting");
  vi.setSystemTime(Date.now() + 3_600_000);
  await host.settle();
  expect(await host.status()).toBe("waiting");
  vi.setSystemTime(Date.now() + 60_000);
  await host.settle();
  expect(await host.object.status()).toMatchObject({ status: "complete", output: "awake" });
});

test("an event is taken by the first wait of its type, also if it came before, and once", async () => {
  const host = await start(async (_event, step) => {
    const first = (await step.waitForEvent("first", { type: "go" })) as { payload: unknown };
    const second = (await step.waitForEvent("second", { type: "go" })) as {
      payload: unknown;
      timestamp: Date;
    };
    return [first.payload, second.payload, second.timestamp instanceof Date];
  });
  await host.object.sendEvent("other", 0);
  await host.object.sendEvent("go", 1);
  await host.settle();
  expect(await host.status()).toBe("waiting");
  host.crash();
  await host.object.sendEvent("go", { two: 2 });
  await host.settle();
  expect(await host.object.status()).toMatchObject({ status: "complete", output: [1, { two: 2 }, true] });
  await expect(host.object.sendEvent("go", 3)).rejects.toThrow(/complete cannot receive events/);
});

test("a wait without an event ends with an error after its timeout", async () => {
  const host = await start(async (_event, step) =>
    step.waitForEvent("never", { type: "x", timeout: "1 minute" }).catch((error: Error) => error.name),
  );
  vi.setSystemTime(Date.now() + 60_000);
  await host.settle();
  expect(await host.object.status()).toMatchObject({ status: "complete", output: "WorkflowTimeoutError" });
});

test("pause holds the program before its next step, resume lets it go on", async () => {
  const ran: string[] = [];
  const gate = Promise.withResolvers<void>();
  const host = new Host(async (_event, step) => {
    await step.do("a", async () => gate.promise);
    await step.do("b", async () => ran.push("b"));
  });
  await host.object.create("w1", {});
  host.alarmAt = null;
  const alarm = host.object.alarm();
  await expect.poll(() => host.status()).toBe("running");
  await host.object.pause();
  expect(await host.status()).toBe("waitingForPause");
  gate.resolve();
  await alarm;
  expect([await host.status(), ran]).toEqual(["paused", []]);
  host.crash();
  await host.settle();
  expect([await host.status(), ran]).toEqual(["paused", []]);
  await host.object.resume();
  await host.settle();
  expect([await host.status(), ran]).toEqual(["complete", ["b"]]);
});

test("terminate ends it for good, restart begins anew", async () => {
  const ran: string[] = [];
  const host = await start(async (_event, step) => {
    await step.do("a", async () => ran.push("a"));
    await step.sleep("nap", "1 hour");
    return "done";
  });
  await host.object.terminate();
  expect(await host.status()).toBe("terminated");
  await expect(host.object.resume()).rejects.toThrow(/terminated cannot be resumed/);
  await host.object.restart();
  await host.settle();
  expect([await host.status(), ran]).toEqual(["waiting", ["a", "a"]]);
  vi.setSystemTime(Date.now() + 3_600_000);
  await host.settle();
  expect(await host.status()).toBe("complete");
});

test("an ended instance is forgotten after 30 days", async () => {
  const host = await start(async () => 1);
  expect(await host.object.create("w1", {})).toBe(false);
  vi.setSystemTime(Date.now() + 30 * 86_400_000);
  await host.settle();
  expect(await host.object.status()).toBeNull();
});

test("parallel steps run at once, and a wait beside a long step ends at its time", async () => {
  vi.useRealTimers();
  const order: string[] = [];
  const gate = Promise.withResolvers<void>();
  const host = await start(async (_event, step) => {
    await Promise.all([
      step.do("long", async () => gate.promise.then(() => order.push("long"))),
      step.sleep("short", 5).then(() => {
        order.push("short");
        gate.resolve();
      }),
    ]);
  });
  expect([await host.status(), order]).toEqual(["complete", ["short", "long"]]);
});

/** Runs the alarm until it succeeds, as the runtime does. Returns how often it failed with the storage. */
async function ringUntilDone(host: Host): Promise<number> {
  for (let failures = 0; ; failures += 1) {
    try {
      await host.object.alarm();
      return failures;
    } catch (error) {
      expect(String(error)).toContain("the disk is full");
    }
  }
}

/** Runs a workflow of all kinds of steps, with a storage whose write number `failing` fails once, and returns what the program saw. */
async function runOn(failing: number): Promise<{ writes: number; ran: string[]; status: unknown }> {
  const ran: string[] = [];
  const program: Program = async (_event, step) => {
    try {
      await step.do("one", async ({ attempt }: { attempt: number }) => ran.push(`one#${attempt}`));
      await step.sleep("nap", 1);
      const event = (await step.waitForEvent("event", { type: "go" })) as { payload: unknown };
      await Promise.all([
        step.do("two", async () => ran.push("two")),
        step.do("three", async () => ran.push("three")),
      ]);
      return event.payload;
    } catch (error) {
      ran.push(`the program saw ${String(error)}`);
      throw error;
    }
  };
  const host = new Host(program);
  await host.object.create("w1", {});
  await host.object.sendEvent("go", "gone");
  let writes = 0;
  host.isFull = () => ++writes === failing;
  await ringUntilDone(host);
  while ((await host.status()) === "waiting") {
    vi.setSystemTime(Date.now() + 1);
    await ringUntilDone(host);
  }
  return { writes, ran, status: await host.object.status() };
}

test("whichever write the storage refuses, the workflow completes, its program sees nothing of it, and no attempt of a step is counted", async () => {
  const { writes } = await runOn(0);
  expect(writes).toBeGreaterThan(10);
  for (let failing = 1; failing <= writes; failing += 1) {
    const { ran, status } = await runOn(failing);
    expect(status).toEqual({ status: "complete", output: "gone" });
    expect(new Set(ran)).toEqual(new Set(["one#1", "two", "three"]));
  }
});

test("the error of a program, and an output that cannot be stored, end the workflow although the first attempt to store it failed", async () => {
  for (const [program, error] of [
    [async () => Promise.reject(new RangeError("own")), { name: "RangeError", message: "own" }],
    [async () => () => 1, { name: "DataCloneError" }],
  ] as const) {
    const host = new Host(program);
    await host.object.create("w1", {});
    let isFull = true;
    host.isFull = (query) => query.includes("ended_at") && isFull;
    await expect(host.object.alarm()).rejects.toThrow("the disk is full");
    isFull = false;
    expect(await ringUntilDone(host)).toBe(0);
    expect(await host.object.status()).toMatchObject({ status: "errored", error });
  }
});

test("a step whose result could not be made durable is not taken for done, and not for failed", async () => {
  const seen: string[] = [];
  const host = new Host(async (_event, step) => {
    await step.do("a", async () => "stored").catch((error: unknown) => seen.push(String(error)));
    seen.push("went on");
  });
  await host.object.create("w1", {});
  host.syncFailures.push(new Error("the disk is full"));
  await expect(host.object.alarm()).rejects.toThrow("the disk is full");
  expect(seen).toEqual([]);
  expect(await ringUntilDone(host)).toBe(0);
  expect([await host.status(), seen]).toEqual(["complete", ["went on"]]);
});

test("an event that arrives after the storage ended an execution is taken by the next one", async () => {
  const host = await start(async (_event, step) => {
    await step.waitForEvent("first", { type: "go" });
    return "done";
  });
  let isFull = true;
  host.isFull = (query) => query.startsWith("DELETE") && isFull;
  await host.object.sendEvent("go", 1);
  isFull = false;
  await host.settle();
  expect(await host.status()).toBe("complete");
});

test("a pause that waits for a step is kept when the storage cuts the step off", async () => {
  const gate = Promise.withResolvers<void>();
  const ran: string[] = [];
  const host = new Host(async (_event, step) => {
    await step.do("a", async () => {
      ran.push("a");
      await gate.promise;
    });
  });
  await host.object.create("w1", {});
  const alarm = host.object.alarm();
  await expect.poll(() => ran).toEqual(["a"]);
  await host.object.pause();
  let isFull = true;
  host.isFull = () => isFull;
  gate.resolve();
  await expect(alarm).rejects.toThrow("the disk is full");
  isFull = false;
  expect(await ringUntilDone(host)).toBe(0);
  expect(await host.status()).toBe("paused");
  await host.object.resume();
  await host.settle();
  expect([await host.status(), ran]).toEqual(["complete", ["a", "a"]]);
});

test("what the storage refuses half way leaves nothing behind that waits for ever", async () => {
  const program: Program = async (_event, step) => {
    await step.waitForEvent("go", { type: "go" });
    return "done";
  };
  const refusing = async (host: Host, query: (text: string) => boolean, act: () => Promise<unknown>) => {
    host.isFull = query;
    await expect(act()).rejects.toThrow("the disk is full");
    host.isFull = () => false;
    await host.settle();
  };
  for (const refused of [(text: string) => text === "alarm", (text: string) => text !== "alarm"]) {
    const host = new Host(program);
    await refusing(host, refused, () => host.object.create("w1", {}));
    expect(await host.status()).toBeUndefined();
    expect(await host.object.create("w1", {})).toBe(true);
    await host.settle();
    expect(await host.status()).toBe("waiting");
    await host.object.pause();
    await refusing(host, refused, () => host.object.resume());
    expect(await host.status()).toBe("paused");
    await host.object.resume();
    await host.settle();
    await refusing(host, refused, () => host.object.sendEvent("go", 1));
    expect(await host.status()).toBe("waiting");
    await refusing(host, refused, () => host.object.restart());
    expect(await host.status()).toBe("waiting");
    await host.object.sendEvent("go", 2);
    await host.settle();
    expect(await host.status()).toBe("complete");
  }
});
