import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TestDatabase } from "./database-fixture.ts";
import { requirePresent, TurnRuntime } from "./index.ts";
import type { TurnRuntimeOptions } from "./turn-runtime.ts";
import type { TurnSpec } from "./turn.ts";

let database: TestDatabase;

beforeEach(() => {
  database = new TestDatabase();
});

afterEach(() => database.close());

const GONE = new Error("gone");
let idles = 0;

async function openRuntime(options: Partial<TurnRuntimeOptions> = {}) {
  idles = 0;
  const runtime = new TurnRuntime<null>({
    owner: {},
    key: "test",
    maxWaiting: 5,
    timeoutMs: 0,
    isInterleaving: false,
    createOverloadError: () => new Error("overloaded"),
    createTimeoutError: () => new Error("timed out"),
    onTurnEnd: () => undefined,
    onIdle: () => (idles += 1),
    onCommitFailure: () => undefined,
    ...options,
  });
  runtime.open(database, database.sync);
  await runtime.start(null, { kind: "start", label: "", isInternal: true, body: () => undefined });
  const write = (text: string) => {
    runtime.transactions.open();
    database.insert(text);
  };
  const run = <T>(body: () => T | Promise<T>, more: Partial<TurnSpec<null, T>> = {}) =>
    runtime.run<T>({ kind: "rpc", label: "", body, ...more });
  return { runtime, write, run };
}

/** Resolves when everything that needs no more input has run. */
const settle = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

describe("a hold", () => {
  it("keeps the runtime from being idle, and reports its end", async () => {
    const { runtime } = await openRuntime();
    await settle();
    const [first, second] = [runtime.hold(), runtime.hold()];
    expect(runtime.isIdle).toBe(false);
    first();
    first();
    expect(runtime.isIdle).toBe(false);
    const before = idles;
    second();
    expect([runtime.isIdle, idles]).toEqual([true, before + 1]);
  });
});

describe("a concurrent turn", () => {
  it("starts while another turn is at an await, ahead of those that wait", async () => {
    const { run } = await openRuntime();
    const order: string[] = [];
    const gate = Promise.withResolvers<void>();
    const long = run(async () => {
      await gate.promise;
      order.push("long");
    });
    const waiting = run(() => void order.push("waiting"));
    await run(() => void order.push("concurrent"), { isConcurrent: true });
    expect(order).toEqual(["concurrent"]);
    gate.resolve();
    await Promise.all([long, waiting]);
    expect(order).toEqual(["concurrent", "long", "waiting"]);
  });

  it("has its outcome although a turn that its commit causes fails", async () => {
    const { runtime, run, write } = await openRuntime();
    let caused: Promise<unknown> = Promise.resolve();
    let isFirst = true;
    runtime.transactions.join({
      afterCommit: () => {
        if (!isFirst) return;
        isFirst = false;
        caused = run(async () => {
          write("caused");
          await Promise.resolve();
          throw new Error("failed");
        });
        caused.catch(() => undefined);
      },
    });
    await expect(run(() => write("a"), { isConcurrent: true })).resolves.toBeUndefined();
    await expect(caused).rejects.toThrow("failed");
  });

  it("does not delay the next turn while it is at an await", async () => {
    const { run } = await openRuntime();
    const gate = Promise.withResolvers<void>();
    const concurrent = run(() => gate.promise, { isConcurrent: true });
    await expect(run(() => "next")).resolves.toBe("next");
    gate.resolve();
    await concurrent;
  });

  it("does not end the segment of a turn that has not reached an await that waits", async () => {
    const { run, write } = await openRuntime();
    const failing = run(async () => {
      write("a");
      void run(() => write("b"), { isConcurrent: true });
      await Promise.resolve();
      write("c");
      throw new Error("failed");
    });
    await expect(failing).rejects.toThrow("failed");
    await settle();
    expect(database.notes()).toEqual(["b"]);
  });

  it("waits until the runtime has started, and is refused with the others when it closes", async () => {
    const { runtime, run } = await openRuntime();
    const unblock = runtime.block();
    const concurrent = run(() => "never", { isConcurrent: true });
    runtime.close(() => GONE);
    await expect(concurrent).rejects.toBe(GONE);
    unblock();
  });
});

describe("the time limit", () => {
  it("of 0 is none, and a turn may set its own", async () => {
    const { run } = await openRuntime({ timeoutMs: 1 });
    const wait = () => new Promise((resolve) => setTimeout(resolve, 20, "done"));
    await expect(run(wait)).rejects.toThrow("timed out");
    await expect(run(wait, { timeoutMs: 0 })).resolves.toBe("done");
  });
});

describe("a runtime that keeps failed writes", () => {
  it.each([
    ["at once", () => undefined],
    ["after an await", () => Promise.resolve()],
  ])("commits what a turn wrote that throws %s, before the error leaves", async (_when, pause) => {
    const { run, write } = await openRuntime({ keepsFailedWrites: true });
    const failing = run(() => {
      write("a");
      const paused = pause();
      if (paused === undefined) throw new Error("failed");
      return paused.then(() => {
        throw new Error("failed");
      });
    });
    await expect(failing).rejects.toThrow("failed");
    expect(database.durable.has("a")).toBe(true);
  });
});

describe("a blocked runtime", () => {
  it("starts no turn, interleaving or not, until every block has ended", async () => {
    const { runtime, run } = await openRuntime({ isInterleaving: true });
    const ends = [runtime.block(), runtime.block()];
    let isRun = false;
    const turn = run(() => (isRun = true));
    ends[0]?.();
    ends[0]?.();
    await settle();
    expect(isRun).toBe(false);
    ends[1]?.();
    await turn;
    expect(isRun).toBe(true);
  });
});

describe("an abandoned runtime", () => {
  it("fails running and waiting turns, whose code can neither write nor send", async () => {
    const { runtime, run, write } = await openRuntime();
    const gate = Promise.withResolvers<void>();
    const later: unknown[] = [];
    const running = run(async () => {
      write("a");
      await gate.promise;
      for (const act of [() => write("b"), requirePresent, () => runtime.outputs.sendWithSegment(NOTHING)]) {
        try {
          act();
        } catch (error) {
          later.push(error);
        }
      }
    });
    const waiting = run(() => write("c"));
    await settle();
    runtime.abandon(() => GONE);
    const outcomes = await Promise.allSettled([running, waiting]);
    expect(outcomes.map((one) => one.status === "rejected" && one.reason)).toEqual([GONE, GONE]);
    await runtime.whenQuiet();
    gate.resolve();
    await settle();
    expect(later).toEqual([GONE, GONE, GONE]);
    expect(database.notes()).toEqual(["a"]);
  });

  it("lets the turn that abandons it end, with what it wrote before its last await", async () => {
    const { runtime, run, write } = await openRuntime({ keepsFailedWrites: true });
    const turn = run(async () => {
      write("a");
      await settle();
      write("b");
      runtime.abandon(() => GONE);
      throw GONE;
    });
    await expect(turn).rejects.toBe(GONE);
    await runtime.whenQuiet();
    expect([...database.durable]).toEqual(["a"]);
  });

  it("sends what was sent before", async () => {
    const { runtime, run, write } = await openRuntime();
    const sent: string[] = [];
    const turn = run(() => {
      write("a");
      runtime.outputs.sendWithSegment({ release: () => sent.push("frame"), drop: () => undefined });
    });
    runtime.abandon(() => GONE);
    await turn;
    expect(sent).toEqual(["frame"]);
  });
});

describe("a segment that is held open", () => {
  it("is one transaction over awaits, and no output leaves before its end", async () => {
    const { runtime, run, write } = await openRuntime({ keepsFailedWrites: true });
    const sent: string[] = [];
    const gate = Promise.withResolvers<void>();
    const turn = run(async () => {
      const release = runtime.transactions.hold();
      write("a");
      runtime.outputs.sendWithSegment({ release: () => sent.push("frame"), drop: () => undefined });
      await gate.promise;
      write("b");
      release();
    });
    await settle();
    expect([database.commits, sent]).toEqual([0, []]);
    gate.resolve();
    await turn;
    expect([database.commits, sent, [...database.durable]]).toEqual([1, ["frame"], ["a", "b"]]);
  });

  it("delays a sync that other turns wait for, without losing it", async () => {
    const { runtime, run, write } = await openRuntime({ isInterleaving: true });
    const gate = Promise.withResolvers<void>();
    const holding = run(async () => {
      const release = runtime.transactions.hold();
      write("a");
      await gate.promise;
      release();
    });
    await settle();
    const other = run(() => write("b"));
    await settle();
    expect([...database.durable]).toEqual([]);
    gate.resolve();
    await Promise.all([holding, other]);
    expect([...database.durable]).toEqual(["a", "b"]);
  });

  it("is rolled back when the runtime ends first", async () => {
    const { runtime, run, write } = await openRuntime({ keepsFailedWrites: true });
    const turn = run(async () => {
      runtime.transactions.hold();
      write("a");
      await new Promise(() => undefined);
    });
    await settle();
    runtime.abandon(() => GONE);
    runtime.finish(() => GONE);
    await expect(turn).rejects.toBe(GONE);
    expect(database.notes()).toEqual([]);
  });
});

const NOTHING = { release: () => undefined, drop: () => undefined };

describe("an observation", () => {
  const never = (waitedMs: number) => {
    throw new Error(`waited ${Math.min(waitedMs, 0)}`);
  };

  it("sees what is committed while a turn is at an await, waits for none, and is no turn", async () => {
    const ended: string[] = [];
    const { runtime, run, write } = await openRuntime({ onTurnEnd: ({ label }) => void ended.push(label) });
    const gate = Promise.withResolvers<void>();
    const long = run(
      async () => {
        write("before the await");
        await gate.promise;
        write("after the await");
      },
      { label: "long" },
    );
    void run(() => write("waiting"));
    await settle();
    expect(runtime.runningTurn).toMatchObject({ kind: "rpc", label: "long" });
    expect(await runtime.observe(() => database.notes(), never)).toEqual(["before the await"]);
    expect(ended).not.toContain("long");
    gate.resolve();
    await long;
    expect(runtime.runningTurn).toBeNull();
  });

  it("does not see a segment that is held open, and gives up when the caller says so", async () => {
    const { runtime, run, write } = await openRuntime();
    const gate = Promise.withResolvers<void>();
    const holding = run(async () => {
      const release = runtime.transactions.hold();
      write("held");
      await gate.promise;
      release();
    });
    await settle();
    await expect(runtime.observe(() => database.notes(), never)).rejects.toThrow("waited 0");
    const patient = runtime.observe(
      () => database.notes(),
      () => gate.resolve(),
    );
    expect(await patient).toEqual(["held"]);
    await holding;
  });

  it("fails when the runtime has ended", async () => {
    const { runtime } = await openRuntime();
    runtime.finish(() => GONE);
    await expect(runtime.observe(() => null, never)).rejects.toBe(GONE);
  });
});
