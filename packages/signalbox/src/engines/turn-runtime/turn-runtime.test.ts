/** Turns, transactions and outputs together, on SQLite in memory. */
import { SignalboxError } from "@signalbox/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { rawSql } from "../../core/sql.ts";
import { currentTurn } from "./current-turn.ts";
import { TestDatabase } from "./database-fixture.ts";
import { TurnRuntime, type TurnRuntimeOptions } from "./turn-runtime.ts";

let database: TestDatabase;
let finish = () => undefined as void;
const ends: string[] = [];

interface Options extends Partial<TurnRuntimeOptions> {
  readonly onStart?: () => void | Promise<void>;
}

async function openRuntime({ onStart, ...options }: Options = {}) {
  const runtime = new TurnRuntime<null>({
    owner: {},
    key: "test",
    maxWaiting: 5,
    timeoutMs: 60_000,
    isInterleaving: false,
    createOverloadError: () => new Error("overloaded"),
    createTimeoutError: () => new Error("timed out"),
    onTurnEnd: (turn, error) => ends.push(`${turn.label} ${error === null ? "ok" : "failed"}`),
    onIdle: () => undefined,
    onCommitFailure: () => undefined,
    ...options,
  });
  runtime.open(database, database.sync);
  finish = () => runtime.finish(() => new Error("gone"));
  const { transactions, outputs } = runtime;
  await runtime.start(null, {
    kind: "start",
    label: "onStart",
    isInternal: true,
    body: onStart ?? (() => undefined),
  });
  const write = (text: string) => {
    transactions.open();
    database.insert(text);
  };
  const run = <T>(label: string, body: () => T | Promise<T>) => runtime.run<T>({ kind: "rpc", label, body });
  return { runtime, transactions, outputs, write, run };
}

const DEFERRED = `CREATE TABLE parent (id INTEGER PRIMARY KEY);
  CREATE TABLE child (p REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)`;
const notes = () => database.notes();
const wait = (ms = 5) => new Promise((resolve) => setTimeout(resolve, ms));

beforeEach(() => {
  ends.length = 0;
  database = new TestDatabase();
});
afterEach(() => {
  finish();
  database.close();
});

describe("turns", () => {
  it("run in order, one at a time", async () => {
    const { run, write } = await openRuntime();
    await Promise.all([
      run("a", async () => {
        write("a1");
        await wait();
        write("a2");
      }),
      run("b", () => write("b")),
      run("c", async () => write("c")),
    ]);
    expect(notes()).toEqual(["a1", "a2", "b", "c"]);
    expect(ends).toEqual(["onStart ok", "a ok", "b ok", "c ok"]);
  });

  it("may overlap when interleaving is on, and still roll back only their own writes", async () => {
    const { run, write } = await openRuntime({ isInterleaving: true });
    const go = Promise.withResolvers<void>();
    const results = await Promise.allSettled([
      run("a", async () => {
        write("a1");
        await go.promise;
        write("a2");
        throw new Error("a fails");
      }),
      run("b", async () => {
        write("b1");
        await wait(1);
        write("b2");
        go.resolve();
        await wait(1);
        write("b3");
      }),
      run("c", () => write("c")),
    ]);
    expect(results.map((result) => result.status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
    expect(notes()).toEqual(["a1", "b1", "c", "b2", "b3"]);
  });

  it("roll back what they wrote since the last real wait", async () => {
    const { run, write } = await openRuntime();
    await expect(
      run("a", async () => {
        write("before");
        await wait();
        write("after");
        await Promise.resolve();
        await (async () => write("nested"))();
        throw new Error("no");
      }),
    ).rejects.toThrow("no");
    expect(notes()).toEqual(["before"]);
  });

  it("whose statement fails do not affect other turns", async () => {
    const { run, write } = await openRuntime();
    const results = await Promise.allSettled([
      run("a", () => write("x")),
      run("b", () => {
        write("y");
        write("x");
      }),
      run("c", () => write("z")),
    ]);
    expect(results.map((result) => result.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(notes()).toEqual(["x", "z"]);
  });

  it("commit what they wrote when they reach a wait, before they end", async () => {
    const { run, write, transactions } = await openRuntime();
    const seen = run("a", async () => {
      write("a");
      await wait();
      return transactions.isOpen;
    });
    expect(await seen).toBe(false);
  });

  it("release their outcome before anything that a later turn sends", async () => {
    const { runtime, outputs, write } = await openRuntime();
    const seen: string[] = [];
    const turn = (name: string, fails: boolean) =>
      runtime.run<void>({
        kind: "rpc",
        label: name,
        onOutcome: (error) => seen.push(`${name} ${error === null ? "is done" : "failed"}`),
        body: () => {
          write(name);
          outputs.sendWithSegment({
            release: () => seen.push(`broadcast of ${name}`),
            drop: () => undefined,
          });
          if (fails) throw new Error("on purpose");
        },
      });
    await Promise.allSettled([turn("first", false), turn("second", true), turn("third", false)]);
    expect(seen).toEqual([
      "broadcast of first",
      "first is done",
      "second failed",
      "broadcast of third",
      "third is done",
    ]);
  });

  it("are bounded in number", async () => {
    const { run } = await openRuntime();
    const all = Array.from({ length: 10 }, (_, i) => run(String(i), () => wait(1)));
    const results = await Promise.allSettled(all);
    expect(results.filter((result) => result.status === "rejected")).toHaveLength(4);
  });

  it("that do not wait yield to the event loop from time to time", async () => {
    const { runtime } = await openRuntime();
    const done: true[] = [];
    const seen = new Set<number>();
    const first = runtime.run({ kind: "manage", label: "first", isInternal: true, body: () => wait() });
    const rest = Array.from({ length: 500 }, () =>
      runtime.run({ kind: "manage", label: "x", isInternal: true, body: () => done.push(true) }),
    );
    await first;
    while (done.length < 500) {
      seen.add(done.length);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(rest);
    expect(seen.size).toBeGreaterThan(3);
  });

  it("wait for onStart, and never run when it fails", async () => {
    await expect(
      openRuntime({
        onStart: async () => {
          await wait();
          throw new Error("cannot start");
        },
      }),
    ).rejects.toThrow("cannot start");
    expect(ends).toEqual(["onStart failed"]);
  });
});

describe("turns that end before the next sync", () => {
  it("share one commit, from which a failed turn removes only its own writes", async () => {
    const { run, write } = await openRuntime();
    const results = await Promise.allSettled([
      run("a", () => write("a")),
      run("b", () => {
        write("b");
        throw new Error("on purpose");
      }),
      run("c", () => write("c")),
    ]);
    expect(results.map((result) => result.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect([notes(), database.commits]).toEqual([["a", "c"], 1]);
  });

  it("do not share one when a constraint is checked at commit: the turn that violates it fails alone", async () => {
    const { run, write } = await openRuntime();
    database.define(DEFERRED);
    await Promise.all([run("a", () => write("a")), run("b", () => write("b"))]);
    const results = await Promise.allSettled([
      run("c", () => write("c")),
      run("d", () => {
        write("d");
        database.run(rawSql("INSERT INTO child VALUES (1)"));
      }),
      run("e", () => write("e")),
    ]);
    expect(results.map((result) => result.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(notes()).toEqual(["a", "b", "c", "e"]);
  });
});

describe("a commit that fails", () => {
  it("at an await fails the turn, whose later writes are refused", async () => {
    const { run, write } = await openRuntime();
    const outcome = run("a", async () => {
      write("a");
      // SQLite checks a deferred constraint only at commit.
      database.define(DEFERRED);
      database.run(rawSql("INSERT INTO child VALUES (1)"));
      await wait();
      write("b");
    });
    await expect(outcome).rejects.toThrow("refused the commit");
    expect(notes()).toEqual([]);
    await run("next", () => write("c"));
    expect(notes()).toEqual(["c"]);
  });

  it("fails the turn also if it goes on before the next iteration of the event loop", async () => {
    const { run, write } = await openRuntime();
    // From an immediate, timers that are due come before the next immediate, which would commit.
    await new Promise((resolve) => setImmediate(resolve));
    const outcome = run("a", async () => {
      write("a");
      database.define(DEFERRED);
      database.run(rawSql("INSERT INTO child VALUES (1)"));
      const due = new Promise((resolve) => setTimeout(resolve, 1));
      const endsAt = performance.now() + 5;
      while (performance.now() < endsAt);
      await due;
      write("b");
    });
    await expect(outcome).rejects.toThrow("refused the commit");
    await run("next", () => write("c"));
    expect(notes()).toEqual(["c"]);
  });

  it("of a shared batch fails every turn in it and all later writes; no output leaves", async () => {
    const failures: Error[] = [];
    const { outputs, run, write } = await openRuntime({ onCommitFailure: (error) => failures.push(error) });
    const seen: string[] = [];
    const send = (text: string) =>
      outputs.sendWithSegment({ release: () => seen.push(text), drop: () => seen.push(`no ${text}`) });
    database.commitFailure = new Error("disk full");
    const results = await Promise.allSettled([
      run("a", () => {
        write("a");
        send("a");
      }),
      run("b", () => write("b")),
    ]);
    expect(results.map((result) => result.status)).toEqual(["rejected", "rejected"]);
    database.commitFailure = null;
    await expect(run("c", () => write("c"))).rejects.toThrow("refused the commit");
    expect([notes(), seen, failures.length]).toEqual([[], ["no a"], 1]);
  });
});

describe("a failed sync", () => {
  it("fails the turns that wait for it and every later one, also those that only read", async () => {
    const { run, write } = await openRuntime();
    database.syncFailure = new Error("broken disk");
    await expect(run("a", () => write("a"))).rejects.toThrow("broken disk");
    database.syncFailure = null;
    await expect(run("b", () => write("b"))).rejects.toThrow("broken disk");
    await expect(run("c", () => notes())).rejects.toThrow("broken disk");
    expect(database.durable.size).toBe(0);
    // Nobody can be told of it: it must not be stored when the database is closed.
    finish();
    expect(notes()).toEqual(["a"]);
  });
});

describe("a turn that exceeds its time limit", () => {
  it("fails, loses its open segment, can no longer write, and lets the next turn start", async () => {
    const { run, write } = await openRuntime({ timeoutMs: 5 });
    const lateWrite = Promise.withResolvers<unknown>();
    const slow = run("slow", async () => {
      write("before the wait");
      await wait(20);
      try {
        write("too late");
      } catch (error) {
        lateWrite.resolve(error);
      }
    });
    const next = run("next", () => write("next"));
    await expect(slow).rejects.toThrow("timed out");
    await next;
    expect(await lateWrite.promise).toMatchObject({ name: "TurnTimeoutError" });
    expect(notes()).toEqual(["before the wait", "next"]);
  });
});

describe("work that a turn has to wait for", () => {
  it("delays the end of the turn, and its failure does not fail the turn", async () => {
    const { run } = await openRuntime();
    const order: string[] = [];
    await Promise.all([
      run("a", () => {
        currentTurn()?.waitFor(wait().then(() => order.push("follow-up")));
        currentTurn()?.waitFor(Promise.reject(new Error("on purpose")));
      }),
      run("b", () => order.push("b")),
    ]);
    expect(order).toEqual(["follow-up", "b"]);
    expect(ends).toEqual(["onStart ok", "a ok", "b ok"]);
  });
});

describe("a closed runtime", () => {
  it("refuses waiting and later turns, and is quiet when the running turn has ended and is durable", async () => {
    const { runtime, run, write } = await openRuntime();
    const running = run("running", async () => {
      await wait();
      write("running");
    });
    const waiting = run("waiting", () => write("waiting"));
    runtime.close(() => new Error("closed"));
    await expect(waiting).rejects.toThrow("closed");
    await expect(run("later", () => write("later"))).rejects.toThrow("closed");
    await runtime.whenQuiet();
    await running;
    expect([...database.durable]).toEqual(["running"]);
    expect(runtime.isIdle).toBe(true);
  });
});

describe("a turn that fails with the storage", () => {
  const explainPartial = (_turn: unknown, error: unknown) => new Error("partly", { cause: error });
  const outcomes = async (turns: readonly Promise<unknown>[]) =>
    (await Promise.allSettled(turns)).map((one) =>
      one.status === "rejected" ? (one.reason as Error).message : "done",
    );

  it("is told so if what it wrote was committed before the sync failed; a turn that only read is not", async () => {
    const { run, write } = await openRuntime({ explainPartial });
    database.syncFailure = new Error("no sync");
    const turns = [run("a", () => write("a")), run("b", () => notes())];
    expect(await outcomes(turns)).toEqual(["partly", "no sync"]);
  });

  it("is not told so if the commit failed: nothing of it is stored", async () => {
    const { run, write } = await openRuntime({ explainPartial });
    database.commitFailure = new SignalboxError("storage_unavailable");
    const turns = [run("a", () => write("a")), run("b", () => write("b"))];
    expect(await outcomes(turns)).toEqual([
      expect.stringMatching(/unavailable/),
      expect.stringMatching(/unavail/),
    ]);
  });

  it("is told so if an earlier segment was committed, also if its code throws the error of a later one", async () => {
    const { run, write } = await openRuntime({ explainPartial });
    const two = run("a", async () => {
      write("a1");
      await expect.poll(() => database.commits).toBe(1);
      database.commitFailure = new SignalboxError("storage_unavailable");
      write("a2");
    });
    expect(await outcomes([two])).toEqual(["partly"]);
    database.commitFailure = null;
    expect(notes()).toEqual(["a1"]);
  });
});
