import { describe, expect, it, onTestFinished } from "vitest";
import { OutputGate } from "./output-gate.ts";

/** A disk whose syncs the test ends. */
class Disk {
  readonly syncs: { succeed: () => void; fail: () => void }[] = [];
  readonly sync = () =>
    new Promise<void>((succeed, reject) => {
      this.syncs.push({ succeed, fail: () => reject(new Error("broken disk")) });
    });

  /** Resolves when the nth sync has begun. */
  async begun(count: number): Promise<void> {
    while (this.syncs.length < count) await new Promise((resolve) => setImmediate(resolve));
  }
}

function open() {
  const disk = new Disk();
  const left: string[] = [];
  let idle = 0;
  const gate = new OutputGate({ sync: disk.sync, onIdle: () => (idle += 1) });
  return {
    disk,
    gate,
    left,
    idleCount: () => idle,
    send: (name: string) =>
      gate.send({ release: () => left.push(name), drop: (error) => left.push(`${name}: ${error.message}`) }),
    commit: (...names: string[]) => {
      gate.transactionOpened();
      for (const name of names)
        gate.send({ release: () => left.push(name), drop: () => left.push(`no ${name}`) });
      gate.transactionCommitted();
    },
  };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe("the output gate", () => {
  it("releases an output at once when every commit is durable", () => {
    const { left, send, disk } = open();
    send("a");
    expect(left).toEqual(["a"]);
    expect(disk.syncs).toHaveLength(0);
  });

  it("holds outputs of a transaction until its commit is durable", async () => {
    const { left, disk, gate } = open();
    gate.transactionOpened();
    gate.send({ release: () => left.push("a"), drop: () => undefined });
    await settle();
    expect(disk.syncs).toHaveLength(0);
    gate.transactionCommitted();
    await disk.begun(1);
    expect(left).toEqual([]);
    disk.syncs[0]?.succeed();
    await settle();
    expect(left).toEqual(["a"]);
  });

  it("drops outputs of a transaction that was rolled back", async () => {
    const { left, gate, send } = open();
    gate.transactionOpened();
    send("a");
    gate.transactionRolledBack();
    send("b");
    expect(left).toEqual(["a: the turn was rolled back before the output left", "b"]);
  });

  it("holds outputs of turns that only read while a commit that they may have read is not durable", async () => {
    const { left, disk, send, commit } = open();
    commit("write");
    send("read");
    expect(left).toEqual([]);
    await disk.begun(1);
    disk.syncs[0]?.succeed();
    await settle();
    expect(left).toEqual(["write", "read"]);
  });

  it("does not count a sync that had begun before a commit", async () => {
    const { left, disk, commit } = open();
    commit("one");
    await disk.begun(1);
    commit("two");
    disk.syncs[0]?.succeed();
    await disk.begun(2);
    expect(left).toEqual(["one"]);
    disk.syncs[1]?.succeed();
    await settle();
    expect(left).toEqual(["one", "two"]);
  });

  it("covers all commits before a sync with that sync", async () => {
    const { left, disk, commit, idleCount } = open();
    for (let i = 0; i < 50; i++) commit(String(i));
    await disk.begun(1);
    disk.syncs[0]?.succeed();
    await settle();
    expect(left).toHaveLength(50);
    expect(disk.syncs).toHaveLength(1);
    expect(idleCount()).toBe(1);
  });

  it("releases nothing after a failed sync", async () => {
    const { left, disk, commit, send, gate } = open();
    commit("one");
    await disk.begun(1);
    disk.syncs[0]?.fail();
    await settle();
    send("two");
    await expect(gate.pass()).rejects.toThrow("broken disk");
    expect(left).toEqual(["no one", "two: broken disk"]);
  });

  describe("with outputs of a turn's code", () => {
    const sendFromTurn = ({ gate, left }: ReturnType<typeof open>, name: string) =>
      gate.sendWithSegment({ release: () => left.push(name), drop: () => left.push(`no ${name}`) });

    it("releases those of a segment that writes nothing when the segment ends, and is idle then", async () => {
      const opened = open();
      sendFromTurn(opened, "a");
      expect([opened.left, opened.gate.isIdle]).toEqual([[], false]);
      await settle();
      expect([opened.left, opened.gate.isIdle, opened.idleCount()]).toEqual([["a"], true, 1]);
    });

    it("holds those before the first write of a segment until that write is durable", async () => {
      const opened = open();
      sendFromTurn(opened, "before");
      opened.commit("after");
      await opened.disk.begun(1);
      expect(opened.left).toEqual([]);
      opened.disk.syncs[0]?.succeed();
      await settle();
      expect(opened.left).toEqual(["before", "after"]);
    });

    it("drops those before a write that is rolled back", () => {
      const opened = open();
      sendFromTurn(opened, "a");
      opened.gate.transactionOpened();
      opened.gate.transactionRolledBack();
      expect(opened.left).toEqual(["no a"]);
    });

    it("waits for the end of an open transaction before it begins the next sync", async () => {
      const opened = open();
      opened.commit("one");
      await opened.disk.begun(1);
      opened.commit("two");
      opened.gate.transactionOpened();
      opened.disk.syncs[0]?.succeed();
      await settle();
      expect(opened.disk.syncs).toHaveLength(1);
      opened.gate.transactionRolledBack();
      await opened.disk.begun(2);
      opened.disk.syncs[1]?.succeed();
      await settle();
      expect(opened.left).toEqual(["one", "two"]);
    });

    it("does not let a later segment's rollback drop those of an earlier one", () => {
      const opened = open();
      sendFromTurn(opened, "a");
      opened.gate.segmentEnded();
      opened.gate.transactionOpened();
      opened.gate.transactionRolledBack();
      expect(opened.left).toEqual(["a"]);
    });
  });
});

describe("the output gate of a database that another process may take over", () => {
  function openShared(confirm: () => Promise<void> | null) {
    const disk = new Disk();
    const left: string[] = [];
    const gate = new OutputGate({ sync: disk.sync, confirm, onIdle: () => undefined });
    const output = (name: string) => ({
      release: () => left.push(name),
      drop: (error: Error) => left.push(`${name}: ${error.message}`),
    });
    return { disk, left, gate, send: (name: string) => gate.send(output(name)), output };
  }

  it("releases what was read at once while the process may answer", () => {
    const { left, send } = openShared(() => null);
    send("a");
    expect(left).toEqual(["a"]);
  });

  it("holds what was read until it is confirmed, in order and with one question", async () => {
    const answers: PromiseWithResolvers<void>[] = [];
    const { left, send, gate } = openShared(() => {
      const answer = Promise.withResolvers<void>();
      answers.push(answer);
      return answer.promise;
    });
    send("a");
    expect(gate.isIdle).toBe(false);
    send("b");
    expect(left).toEqual([]);
    expect(answers).toHaveLength(1);
    answers[0]?.resolve();
    await settle();
    expect(left).toEqual(["a", "b"]);
    expect(gate.isIdle).toBe(true);
  });

  it("asks after a sync, too: what was read may be younger than the write", async () => {
    const answer = Promise.withResolvers<void>();
    const { left, gate, disk, output } = openShared(() => answer.promise);
    gate.transactionOpened();
    gate.send(output("write"));
    gate.transactionCommitted();
    await disk.begun(1);
    gate.send(output("read"));
    disk.syncs[0]?.succeed();
    await settle();
    expect(left).toEqual([]);
    answer.resolve();
    await settle();
    expect(left).toEqual(["write", "read"]);
  });

  it("drops everything when the answer is no", async () => {
    const { left, send } = openShared(() => Promise.reject(new Error("taken")));
    send("a");
    await settle();
    send("b");
    expect(left).toEqual(["a: taken", "b: taken"]);
  });

  it("releases the other outputs, and goes on, if one of them throws", async () => {
    const { disk, gate, left, commit, send, idleCount } = open();
    // The error is not lost: it is reported like every other one that nobody handles.
    const reported: unknown[] = [];
    const listeners = process.listeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection");
    process.on("unhandledRejection", (error) => reported.push(error));
    onTestFinished(() => {
      process.removeAllListeners("unhandledRejection");
      for (const listener of listeners) process.on("unhandledRejection", listener);
    });
    commit("a");
    gate.send({
      release: () => {
        throw new Error("this output is broken");
      },
      drop: () => undefined,
    });
    send("b");
    await disk.begun(1);
    disk.syncs[0]?.succeed();
    await settle();
    expect([left, gate.isIdle, idleCount()]).toEqual([["a", "b"], true, 1]);
    await expect.poll(() => reported.map(String)).toEqual(["Error: this output is broken"]);
    commit("c");
    await disk.begun(2);
    disk.syncs[1]?.succeed();
    await settle();
    expect(left).toEqual(["a", "b", "c"]);
  });
});
