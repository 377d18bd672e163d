/** The fence on a real PostgreSQL. `fence-model.test.ts` has every order of the steps; this has the server's own locks and snapshots. */
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { MIN_COUNT, race, type RaceOptions } from "./fence-race-fixture.ts";
import { History } from "./history.ts";
import { GRACE_MS } from "./snapshots.ts";
import { useSharedTables } from "./shared-store-fixture.ts";
import {
  appendStatement,
  CONDITIONS,
  KINDS,
  type OwnClaim,
  STATEMENTS,
  type Statements,
} from "./statements.ts";

const tables = useSharedTables();
const WITHOUT_EPOCH = { ...STATEMENTS, append: appendStatement({ ...CONDITIONS, epoch: "true" }) };
const WITHOUT_PREDECESSOR = {
  ...STATEMENTS,
  append: appendStatement({ ...CONDITIONS, predecessor: "true" }),
};
const WITHOUT_BOTH = { ...STATEMENTS, append: appendStatement({ epoch: "true", predecessor: "true" }) };

/** Mulberry32: the same choices in each run; the order of the statements is the server's. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const options = (more: Partial<RaceOptions> = {}): RaceOptions => ({
  url: tables.postgres.url,
  statements: STATEMENTS,
  writers: 6,
  instances: 4,
  steps: 150,
  random: seeded(15),
  hasGrace: true,
  ...more,
});

describe("writers that race", () => {
  it("lose, double and mix nothing", async () => {
    const result = await race(options());
    expect(result.violations).toEqual([]);
    // Otherwise nothing was tested.
    for (const count of [result.acknowledged, result.refused, result.claims, result.snapshots])
      expect(count).toBeGreaterThan(MIN_COUNT);
  });

  it("lose records with the primary key alone", async () => {
    const result = await race(options({ statements: WITHOUT_BOTH, hasGrace: false }));
    expect(result.violations.length).toBeGreaterThan(0);
  });
});

describe("a server that has lost the last record", () => {
  let history: History;
  beforeEach(() => void (history = new History(tables.postgres.url)));

  /** The first owner has written record 2, which the server loses. Returns whether its record 3 is accepted. */
  async function appendAfterLoss(statements: Statements, isTakenOver: boolean): Promise<boolean> {
    history = new History(tables.postgres.url, statements);
    const key = Buffer.from("lost");
    await history.locate([key], [0], "1", 1);
    const [row] = await history.find([key]);
    const id = row?.id ?? 0;
    const connection = await history.connections.open();
    const append = async (seq: number) => {
      const data = Buffer.from("x");
      const record = { id, seq, epoch: 1, node: "1", kind: KINDS.pages, data };
      return (await history.append(connection, [record], data)).has(id);
    };
    expect(await append(2)).toBe(true);
    await tables.query("DELETE FROM agent_log WHERE agent = $1 AND seq = 2", [id]);
    if (isTakenOver) expect(await history.takeOver("2", 1, [{ id, epoch: 1 }])).toMatchObject([{ seq: 2 }]);
    const isAccepted = await append(3);
    await history.close();
    return isAccepted;
  }

  it("refuses a record whose predecessor is gone, or is the claim of another node", async () => {
    expect(await appendAfterLoss(STATEMENTS, false)).toBe(false);
    await tables.query("TRUNCATE agent_owner, agent_log");
    expect(await appendAfterLoss(STATEMENTS, true)).toBe(false);
  });

  it("accepts it if the predecessor is not checked", async () => {
    expect(await appendAfterLoss(WITHOUT_PREDECESSOR, false)).toBe(true);
  });

  it("accepts it if the epoch is not checked", async () => {
    expect(await appendAfterLoss(WITHOUT_EPOCH, true)).toBe(true);
  });
});

describe("an epoch that was given out a second time, by a server that lost its first claim", () => {
  it("lets the former owner change nothing", async () => {
    const history = new History(tables.postgres.url);
    onTestFinished(() => history.close());
    await history.locate([Buffer.from("twice")], [0], "1", 1);
    const [row] = await history.find([Buffer.from("twice")]);
    const [former, present] = ["1", "2"].map((node) => ({ id: row?.id ?? 0, epoch: 1, node }));
    if (former === undefined || present === undefined) throw new Error("unreachable");
    await tables.query("UPDATE agent_owner SET owner = 2");
    const snapshotOf = (claim: OwnClaim) => {
      async function* parts() {
        yield await Promise.resolve({ part: 0, data: Buffer.from(claim.node) });
      }
      return history.snapshot({ ...claim, seq: 1, pages: 1, pageBytes: 1, partCount: 1, parts: parts() });
    };
    const state = () =>
      tables.query(
        `SELECT owner::text, snap_seq::text, (SELECT count(*)::int FROM agent_log) AS records,
           (SELECT string_agg(convert_from(data, 'UTF8'), ',') FROM agent_part) AS parts FROM agent_owner`,
      );
    expect(await snapshotOf(present)).not.toBeNull();
    const before = [{ owner: "2", snap_seq: "1", records: 1, parts: "2" }];
    expect(await state()).toEqual(before);

    expect(await snapshotOf(former)).toBeNull();
    expect(await history.readSnapshot(former)).toBeNull();
    await history.sweep([{ ...former, upTo: 1, claimSeq: 0 }]);
    await history.release([former], null);
    expect(await history.destroy(former)).toBe(false);
    expect(await state()).toEqual(before);

    await history.sweep([{ ...present, upTo: 1, claimSeq: 0 }]);
    await history.release([present], "3");
    expect(await state()).toEqual([{ ...before[0], owner: "3", records: 0 }]);
  });
});

describe("a statement that takes long", () => {
  const LOCK = 0x5347_7777;
  /** Waits in the middle: its conditions are judged on the snapshot at its beginning. */
  const SLOW = {
    ...STATEMENTS,
    append: appendStatement({
      ...CONDITIONS,
      predecessor: `${CONDITIONS.predecessor} AND pg_advisory_xact_lock(${LOCK})::text = ''`,
    }),
  };

  /** The instance is taken over twice and compacted meanwhile. Returns whether the record of the first owner is written after all. */
  async function appendSlowly(isSweptAtOnce: boolean): Promise<boolean> {
    const [history, slow] = [new History(tables.postgres.url), new History(tables.postgres.url, SLOW)];
    const key = Buffer.from("slow");
    await history.locate([key], [0], "1", 1);
    const [row] = await history.find([key]);
    const id = row?.id ?? 0;
    const data = Buffer.from("x");
    await tables.query("SELECT pg_advisory_lock($1)", [LOCK]);
    const connection = await slow.connections.open();
    await connection.client.query("SET lock_timeout = 0");
    const late = slow.append(
      connection,
      [{ id, seq: 2, epoch: 1, node: "1", kind: KINDS.pages, data }],
      data,
    );
    await expect
      .poll(() => tables.query("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory'"))
      .toHaveLength(1);
    await history.takeOver("2", 1, [{ id, epoch: 1 }]);
    await history.takeOver("3", 1, [{ id, epoch: 2 }]);
    async function* parts() {
      yield await Promise.resolve({ part: 0, data });
    }
    await history.snapshot({
      id,
      epoch: 3,
      node: "3",
      seq: 3,
      pages: 1,
      pageBytes: 1,
      partCount: 1,
      parts: parts(),
    });
    if (isSweptAtOnce) await history.sweep([{ id, epoch: 3, node: "3", upTo: 3, claimSeq: 3 }]);
    await tables.query("SELECT pg_advisory_unlock($1)", [LOCK]);
    const isWritten = (await late).has(id);
    await history.close();
    await slow.close();
    return isWritten;
  }

  it("is refused as long as the records are kept that it may have seen", async () => {
    expect(await appendSlowly(false)).toBe(false);
  });

  it("would be written, and lost, if records were deleted at once", async () => {
    expect(await appendSlowly(true)).toBe(true);
  });

  it("ends before records are deleted", async () => {
    const history = new History(tables.postgres.url);
    const { client } = await history.connections.open();
    const { rows } = await client.query(
      "SELECT setting::int AS ms FROM pg_settings WHERE name = 'statement_timeout'",
    );
    expect(rows).toEqual([{ ms: 10_000 }]);
    await history.close();
    expect(GRACE_MS).toBe(60_000);
  });
});

describe("claims", () => {
  it("have one winner", async () => {
    const first = new History(tables.postgres.url);
    const histories = [first, ...["2", "3"].map(() => new History(tables.postgres.url))];
    const key = Buffer.from("contested");
    await first.locate([key], [0], "1", 1);
    for (let round = 1; round <= 20; round++) {
      const rows = await first.find([key]);
      const claims = await Promise.all(
        histories.map((history, i) => history.takeOver(String(i + 1), 1, rows)),
      );
      expect(claims.filter((claimed) => claimed !== null)).toMatchObject([[{ epoch: round + 1 }]]);
    }
    await Promise.all(histories.map((history) => history.close()));
  });
});
