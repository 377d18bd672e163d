/** The oracle itself: each way in which a cluster can go wrong is reported by its rule. */
import { describe, expect, it } from "vitest";
import type { EventKind, EventRow, WorkAudit } from "./chain-agent.ts";
import { nextHash, START_HASH } from "./chain-hash.ts";
import { ChainModel } from "./chain-model.ts";

const QUIET: WorkAudit = { activations: [], work: [], waiting: [], deadLetters: 0, connects: [] };

/** Rows with right hashes. */
function chain(ids: readonly string[], kind: EventKind = "call", epoch = 1): EventRow[] {
  let hash = START_HASH;
  return ids.map((id, i) => {
    hash = nextHash(hash, id);
    return { seq: i + 1, id, kind, hash, epoch };
  });
}

/** A client that sent the events one after the other, all of which were acknowledged. */
function acknowledged(ids: readonly string[], kind: EventKind = "call") {
  const reports: string[] = [];
  const model = new ChainModel("e", (text) => reports.push(text));
  for (const id of ids) {
    model.sending(id, kind);
    model.acknowledged(id);
  }
  return { model, reports };
}

describe("the oracle of agents", () => {
  it("has nothing to report of a right history", () => {
    const { model, reports } = acknowledged(["a", "b", "c"]);
    model.checkRows(chain(["a", "b", "c"]));
    model.checkEnd(QUIET);
    expect(reports).toEqual([]);
  });

  it("reports a lost event, also one that was stored for later", () => {
    const { model, reports } = acknowledged(["a", "b"]);
    model.sending("late", "delivery");
    model.acknowledged("late", true);
    model.checkRows(chain(["a"]));
    model.checkEnd(QUIET);
    expect(reports).toEqual([
      expect.stringContaining("lost: b was acknowledged"),
      expect.stringContaining("lost: late was acknowledged with 202"),
    ]);
  });

  it("allows an event without an acknowledgement to be there or not, once", () => {
    const { model, reports } = acknowledged(["a"]);
    model.sending("x", "call");
    model.sending("y", "call");
    model.checkRows(chain(["a", "x"]));
    model.checkEnd(QUIET);
    expect(reports).toEqual([]);
  });

  it("reports an event that ran twice, and one that nobody sent", () => {
    const { model, reports } = acknowledged(["a", "b"]);
    model.checkRows(chain(["a", "b", "a", "z"]));
    expect(reports).toEqual([expect.stringContaining("doubled: a"), expect.stringContaining("doubled: z")]);
  });

  it("reports events in another order than they were acknowledged", () => {
    const { model, reports } = acknowledged(["a", "b"]);
    model.checkRows(chain(["b", "a"]));
    expect(reports).toEqual([expect.stringContaining("out of order: a")]);
  });

  it("reports rows that do not follow each other", () => {
    const { model, reports } = acknowledged(["a", "b", "c"]);
    const [first, , third] = chain(["a", "b", "c"]);
    model.checkRows([first, third] as EventRow[]);
    expect(reports[0]).toContain("gap: row 3 follows row 1");
    expect(reports[1]).toContain("broken chain: row 3");
  });

  it("reports an answer that is older than one that had arrived before its request began", () => {
    const { model, reports } = acknowledged(["a", "b"]);
    const [first, second] = chain(["a", "b"]) as [EventRow, EventRow];
    model.answered({ ...second, process: "p" }, model.known, "node-1");
    model.answered({ ...first, process: "p" }, model.known, "node-2");
    expect(reports).toEqual([expect.stringContaining("stale answer: node-2 returned 1 after 2")]);
  });

  it("reports two processes in one epoch, and an answer of an epoch that had ended", () => {
    const { model, reports } = acknowledged(["a"]);
    const [row] = chain(["a"]) as [EventRow];
    model.answered({ ...row, epoch: 1, process: "p" }, model.known, "node-1");
    model.answered({ ...row, epoch: 1, process: "q" }, model.known, "node-2");
    model.answered({ ...row, epoch: 2, process: "q" }, model.known, "node-2");
    model.answered({ ...row, epoch: 1, process: "p" }, model.known, "node-1");
    expect(reports).toEqual([
      expect.stringContaining("split brain: epoch 1 is of p and of q"),
      expect.stringContaining("split brain: node-1 answered in epoch 1"),
    ]);
  });

  it("reports what a client saw and the rows do not have", () => {
    const { model, reports } = acknowledged(["a"]);
    model.saw({ seq: 1, hash: "another" });
    model.saw({ seq: 2, hash: "later" });
    model.checkRows(chain(["a"]));
    model.checkEnd(QUIET);
    expect(reports).toEqual([
      expect.stringContaining("forked: a client saw another at row 1"),
      expect.stringContaining("lost: a client saw row 2"),
    ]);
  });

  it("reports work that did not run, ran twice, or was not planned", () => {
    const { model, reports } = acknowledged(["a", "b"], "queue");
    model.checkRows(chain(["a", "b"], "queue"));
    const work = [
      { id: "a", times: 2, lateMs: 0 },
      { id: "z", times: 1, lateMs: 0 },
    ];
    model.checkEnd({ ...QUIET, work });
    expect(reports).toEqual([
      expect.stringContaining("work of a took effect 2 times"),
      expect.stringContaining("work of z was not planned"),
      expect.stringContaining("work of b did not run"),
    ]);
  });

  it("reports a socket that was connected twice, or whose connection is not stored", () => {
    const { model, reports } = acknowledged([]);
    model.connected("s1");
    model.connected("s1");
    model.connected("s2");
    model.checkEnd({ ...QUIET, connects: [{ nonce: "s1", times: 2 }] });
    expect(reports).toEqual([
      expect.stringContaining("socket s1 was connected 2 times"),
      expect.stringContaining("socket s2 was connected, and its onConnect"),
    ]);
  });
});
