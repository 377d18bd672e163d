/** Turns and transactions together, on a real instance database. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type InstanceDatabase, openInstanceStore } from "../instance-store/index.ts";
import { rawSql, sql } from "../../core/sql.ts";
import { Mailbox } from "./mailbox.ts";
import { OutputGate } from "./output-gate.ts";
import { Transactions } from "./transactions.ts";

let folder: string;
let database: InstanceDatabase;
const ends: string[] = [];

function fail(error: Error): never {
  throw error;
}

async function openMailbox(options: { isInterleaving?: boolean; onStart?: () => Promise<void> } = {}) {
  const gate = new OutputGate(
    () => database.sync(),
    () => undefined,
  );
  const transactions = new Transactions(database, gate, () => undefined);
  const owner = { key: "test/x", passGate: () => gate.pass(), callAgent: () => Promise.resolve() };
  const mailbox = new Mailbox({
    maxWaiting: 5,
    timeoutMs: 1000,
    isInterleaving: options.isInterleaving ?? false,
    owner,
    onEnd: (turn, error) => ends.push(`${turn.label} ${error === null ? "ok" : "failed"}`),
    onIdle: () => undefined,
  });
  await mailbox.open(gate, transactions, options.onStart ?? (() => undefined));
  const write = (text: string) => {
    transactions.open();
    database.run(sql`INSERT INTO note (text) VALUES (${text})`);
  };
  const run = <T>(label: string, body: () => T | Promise<T>) => mailbox.run<T>({ kind: "rpc", label, body });
  return { mailbox, transactions, gate, write, run };
}

const notes = () =>
  database.all<{ text: string }>(sql`SELECT text FROM note ORDER BY rowid`).map(({ text }) => text);
const wait = (ms = 5) => new Promise((resolve) => setTimeout(resolve, ms));

beforeEach(async () => {
  ends.length = 0;
  folder = await mkdtemp(join(tmpdir(), "signalbox-mailbox-"));
  const store = await openInstanceStore("journal", {
    folder: join(folder, "agents"),
    baseSchema: { version: 1, create: "", upgrade: () => "" },
    reservedName: "_runtime",
    segmentBytes: 2 ** 20,
    onFailure: fail,
    onStall: fail,
  });
  database = await store.open("x");
  database.run(rawSql("CREATE TABLE note (text TEXT UNIQUE)"));
});
afterEach(async () => {
  await database.close();
  await rm(folder, { recursive: true, force: true });
});

describe("turns", () => {
  it("run in order, one at a time", async () => {
    const { run, write } = await openMailbox();
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

  it("may overlap when the agent opted in, and still roll back only their own writes", async () => {
    const { run, write } = await openMailbox({ isInterleaving: true });
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
    const { run, write } = await openMailbox();
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

  it("whose statement fails harm no other turn", async () => {
    const { run, write } = await openMailbox();
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
    const { run, write, transactions } = await openMailbox();
    const seen = run("a", async () => {
      write("a");
      await wait();
      return transactions.isOpen;
    });
    expect(await seen).toBe(false);
  });

  it("tell of their outcome before anything a later turn sends", async () => {
    const { mailbox, gate, write } = await openMailbox();
    const seen: string[] = [];
    const turn = (name: string, fails: boolean) =>
      mailbox.run<void>({
        kind: "rpc",
        label: name,
        tell: (error) => seen.push(`${name} ${error === null ? "is done" : "failed"}`),
        body: () => {
          write(name);
          gate.sendWithSegment({ release: () => seen.push(`broadcast of ${name}`), drop: () => undefined });
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
    const { run } = await openMailbox();
    const all = Array.from({ length: 10 }, (_, i) => run(String(i), () => wait(1)));
    const results = await Promise.allSettled(all);
    expect(results.filter((result) => result.status === "rejected")).toHaveLength(4);
  });

  it("that wait for nothing leave the loop to others now and then", async () => {
    const { mailbox } = await openMailbox();
    const done: true[] = [];
    const seen = new Set<number>();
    const first = mailbox.run({ kind: "manage", label: "first", isGated: false, body: () => wait() });
    const rest = Array.from({ length: 500 }, () =>
      mailbox.run({ kind: "manage", label: "x", isGated: false, body: () => done.push(true) }),
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
      openMailbox({
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
  function countCommits(): () => number {
    let commits = 0;
    const commit = database.commit.bind(database);
    database.commit = () => {
      commits += 1;
      commit();
    };
    return () => commits;
  }

  it("share one commit, of which one that fails takes only its own part away", async () => {
    const { run, write } = await openMailbox();
    const commits = countCommits();
    const results = await Promise.allSettled([
      run("a", () => write("a")),
      run("b", () => {
        write("b");
        throw new Error("on purpose");
      }),
      run("c", () => write("c")),
    ]);
    expect(results.map((result) => result.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect([notes(), commits()]).toEqual([["a", "c"], 1]);
  });

  it("do not share one when a constraint waits for the commit: the one that breaks it fails alone", async () => {
    const { run, write } = await openMailbox();
    database.run(rawSql("CREATE TABLE parent (id INTEGER PRIMARY KEY)"));
    database.run(rawSql("CREATE TABLE child (p REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)"));
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
    const { run, write } = await openMailbox();
    const outcome = run("a", async () => {
      write("a");
      // A deferred constraint is only checked by the commit.
      database.run(rawSql("CREATE TABLE parent (id INTEGER PRIMARY KEY)"));
      database.run(rawSql("CREATE TABLE child (p REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)"));
      database.run(rawSql("INSERT INTO child VALUES (1)"));
      await wait();
      write("b");
    });
    await expect(outcome).rejects.toThrow("refused the commit");
    expect(notes()).toEqual([]);
    await run("next", () => write("c"));
    expect(notes()).toEqual(["c"]);
  });
});
