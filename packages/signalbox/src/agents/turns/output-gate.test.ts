import { describe, expect, it } from "vitest";
import { OutputGate, RolledBackError } from "./output-gate.ts";

/** A gate whose syncs end when the test says so, and a list of what came out of it. */
function createGate() {
  const syncs: { end: () => void; fail: (error: Error) => void }[] = [];
  const gate = new OutputGate(
    () => new Promise<void>((resolve, reject) => void syncs.push({ end: resolve, fail: reject })),
    () => undefined,
  );
  const seen: string[] = [];
  const output = (name: string) => ({
    release: () => void seen.push(name),
    drop: (error: Error) => void seen.push(`${name} dropped: ${error.name}`),
  });
  return { gate, seen, syncs, output };
}

/** Long enough for microtasks, ticks and immediates that are due. */
const settle = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

describe("the output gate", () => {
  it("lets an output of a segment that writes nothing leave when the segment ends", async () => {
    const { gate, seen, output } = createGate();
    gate.sendWithSegment(output("a"));
    expect(seen).toEqual([]);
    await settle();
    expect(seen).toEqual(["a"]);
  });

  it("holds what a segment says before its first write until that write is synced", async () => {
    const { gate, seen, syncs, output } = createGate();
    gate.sendWithSegment(output("before the write"));
    gate.transactionOpened();
    gate.sendWithSegment(output("after the write"));
    await settle();
    gate.transactionCommitted();
    await settle();
    expect(seen).toEqual([]);
    syncs[0]?.end();
    await settle();
    expect(seen).toEqual(["before the write", "after the write"]);
  });

  it("drops what a segment says before a write that is rolled back", () => {
    const { gate, seen, output } = createGate();
    gate.sendWithSegment(output("a"));
    gate.transactionOpened();
    gate.transactionRolledBack();
    expect(seen).toEqual([`a dropped: ${new RolledBackError().name}`]);
  });

  it("does not let a later segment's rollback drop an earlier one's outputs", () => {
    const { gate, seen, output } = createGate();
    gate.sendWithSegment(output("a"));
    gate.segmentEnded();
    gate.transactionOpened();
    gate.transactionRolledBack();
    expect(seen).toEqual(["a"]);
  });

  it("does not count a sync that began before the commit", async () => {
    const { gate, seen, syncs, output } = createGate();
    gate.transactionOpened();
    gate.transactionCommitted();
    gate.send(output("first"));
    await settle();
    gate.transactionOpened();
    gate.transactionCommitted();
    gate.send(output("second"));
    syncs[0]?.end();
    await settle();
    expect(seen).toEqual(["first"]);
    syncs[1]?.end();
    await settle();
    expect(seen).toEqual(["first", "second"]);
  });

  it("covers all commits that came before a sync with that one", async () => {
    const { gate, seen, syncs, output } = createGate();
    for (let i = 0; i < 50; i++) {
      gate.transactionOpened();
      gate.send(output(String(i)));
      gate.transactionCommitted();
    }
    await settle();
    syncs[0]?.end();
    await settle();
    expect(seen).toHaveLength(50);
    expect(syncs).toHaveLength(1);
    expect(gate.isIdle).toBe(true);
  });

  it("holds an answer that only read, when a commit before it is not synced", async () => {
    const { gate, seen, syncs, output } = createGate();
    gate.transactionOpened();
    gate.transactionCommitted();
    gate.send(output("read"));
    await settle();
    expect(seen).toEqual([]);
    syncs[0]?.end();
    await settle();
    expect(seen).toEqual(["read"]);
  });

  it("lets nothing out after a failed sync", async () => {
    const { gate, seen, syncs, output } = createGate();
    gate.transactionOpened();
    gate.transactionCommitted();
    gate.send(output("a"));
    await settle();
    syncs[0]?.fail(new Error("disk"));
    await settle();
    gate.send(output("b"));
    gate.sendWithSegment(output("c"));
    await settle();
    expect(seen).toEqual(["a dropped: Error", "b dropped: Error", "c dropped: Error"]);
  });
});
