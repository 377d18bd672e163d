/** The stored turns of instances, on both database engines. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ENGINES, type OpenedDatabase } from "../../../../../test/support/engines.ts";
import { sql } from "../../core/sql.ts";
import { type NewRecord, RecordPace, Timeline } from "./timeline.ts";
import type { InstanceRef } from "./instance-ref.ts";

const NOW = 1_800_000_000_000;
const DAY_MS = 86_400_000;
const ALL = { kind: undefined, failed: false, before: undefined, limit: 1000 };

const record = (change: Partial<NewRecord> = {}): NewRecord => ({
  at: NOW,
  durationMs: 1.5,
  kind: "rpc",
  label: "add",
  reference: null,
  error: null,
  failureId: null,
  payload: "[1]",
  state: null,
  ...change,
});

describe.each(ENGINES)("on %s", (_engine, open) => {
  let opened: OpenedDatabase;
  let now = NOW;
  const failures: unknown[] = [];

  beforeAll(async () => {
    opened = await open();
  });

  afterAll(async () => {
    await opened.database.close();
    await opened.drop();
  });

  const openTimeline = (random = 1, keptInAll = 200_000) => {
    now = NOW;
    return new Timeline({
      database: opened.database,
      clock: { now: () => now },
      onFailure: (error) => failures.push(error),
      random: () => random,
      keptInAll,
    });
  };
  const refOf = (name: string): InstanceRef => ({ account: "default", agent: "a", name });

  it("turns are read newest first, page by page, by kind and by failure; texts with NUL are stored", async () => {
    const timeline = openTimeline();
    const ref = refOf("pages");
    const pace = new RecordPace();
    for (let i = 0; i < 5; i++)
      timeline.add(ref, pace, record({ label: `m${i}\0`, error: i === 3 ? "no\0" : null }));
    timeline.add(
      ref,
      pace,
      record({
        kind: "queue",
        payload: '"\0"',
        state: { changes: [{ path: ["n"], before: "1", after: "2" }], isCut: false },
      }),
    );
    const all = await timeline.list(ref, ALL);
    expect(all.map(({ label }) => label)).toEqual(["add", "m4�", "m3�", "m2�", "m1�", "m0�"]);
    expect(all[0]).toMatchObject({ kind: "queue", duration_us: 1500, changes_state: 1, skipped: 0 });
    const next = await timeline.list(ref, { ...ALL, before: all[1]?.id, limit: 2 });
    expect(next.map(({ label }) => label)).toEqual(["m3�", "m2�"]);
    expect(await timeline.list(ref, { ...ALL, failed: true })).toMatchObject([{ error: "no�" }]);
    expect(await timeline.list(ref, { ...ALL, kind: "queue" })).toHaveLength(1);
    const full = await timeline.find(ref, all[0]?.id ?? "");
    expect(JSON.parse(full?.state ?? "")).toMatchObject({ changes: [{ path: ["n"], before: "1" }] });
    expect(await timeline.find(refOf("other"), all[0]?.id ?? "")).toBeUndefined();
    expect(failures).toEqual([]);
  });

  it("turns beyond the rate are counted, and the next record says how many", async () => {
    const timeline = openTimeline();
    const ref = refOf("busy");
    const pace = new RecordPace();
    let admitted = 0;
    for (let i = 0; i < 150; i++) if (timeline.admits(ref, pace)) admitted += 1;
    expect(admitted).toBe(100);
    // Another instance is not affected.
    expect(timeline.admits(refOf("other"), new RecordPace())).toBe(true);
    // A reader gives nobody more.
    await timeline.list(ref, ALL);
    expect(timeline.admits(ref, pace)).toBe(false);
    await timeline.endSecond();
    expect(timeline.admits(ref, pace)).toBe(true);
    timeline.add(ref, pace, record());
    timeline.add(ref, pace, record());
    expect((await timeline.list(ref, ALL)).map(({ skipped }) => skipped)).toEqual([0, 51]);
    const others = Array.from({ length: 2000 }, () => new RecordPace());
    expect(others.filter((other) => timeline.admits(ref, other)).length).toBeLessThan(500);
  });

  it("an account that records all it can leaves records to others, in each second and in what is kept", async () => {
    const timeline = openTimeline(1, 100);
    const busy = { account: "busy", agent: "a", name: "x" };
    const taken = Array.from({ length: 2000 }, () => new RecordPace());
    expect(taken.filter((pace) => timeline.admits(busy, pace)).length).toBeGreaterThan(100);
    expect(timeline.admits({ ...busy, account: "calm" }, new RecordPace())).toBe(true);

    await opened.database.run(sql`DELETE FROM agent_turn`);
    const keep = (account: string, count: number) => {
      for (let i = 0; i < count; i++)
        timeline.add({ ...busy, account }, new RecordPace(), record({ label: `${account}${i}` }));
    };
    keep("calm", 20);
    keep("other", 60);
    keep("busy", 300);
    await timeline.flush();
    await timeline.prune();
    const kept = async (account: string) =>
      (await timeline.list({ ...busy, account }, ALL)).map(({ label }) => label);
    expect([(await kept("calm")).length, (await kept("other")).length, (await kept("busy")).length]).toEqual([
      20, 40, 40,
    ]);
    expect((await kept("busy")).at(-1)).toBe("busy260");
  });

  it("an instance keeps some hundred records, and none for longer than a day", async () => {
    const timeline = openTimeline(0);
    const ref = refOf("long");
    const pace = new RecordPace();
    for (let i = 0; i < 700; i++) timeline.add(ref, pace, record({ label: `m${i}` }));
    await timeline.flush();
    const kept = await timeline.list(ref, ALL);
    expect(kept).toHaveLength(500);
    expect(kept.at(-1)?.label).toBe("m200");
    now += DAY_MS + 60_000;
    timeline.add(ref, pace, record({ label: "tomorrow" }));
    expect((await timeline.list(ref, ALL)).map(({ label }) => label)).toEqual(["tomorrow"]);
    await timeline.prune();
    const rows = await opened.database.all(sql`SELECT label FROM agent_turn WHERE name = 'long'`);
    expect(rows).toEqual([{ label: "tomorrow" }]);
  });

  it("the last hour of a page of instances is counted by step, with skipped turns, and its slowest turns are found", async () => {
    const timeline = openTimeline();
    const pace = new RecordPace();
    for (let i = 1; i <= 40; i++) {
      pace.skipped = i === 40 ? 5 : 0;
      timeline.add(refOf("recent"), pace, record({ at: NOW - (i <= 10 ? 6 * 60_000 : 0), durationMs: i }));
    }
    timeline.add(refOf("calm"), new RecordPace(), record());
    await timeline.flush();
    const found = await timeline.recent({ account: "default", agent: "a" }, ["recent", "calm", "none"]);
    expect(found.get("recent")).toEqual({ counts: [0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 35], p95Us: 38_000 });
    expect(found.get("calm")?.counts.at(-1)).toBe(1);
    expect(found.has("none")).toBe(false);
  });

  it("the records of a destroyed instance are gone, those that wait included", async () => {
    const timeline = openTimeline();
    const ref = refOf("gone");
    const pace = new RecordPace();
    timeline.add(ref, pace, record());
    await timeline.flush();
    timeline.add(ref, pace, record());
    await timeline.remove(ref);
    expect(await timeline.list(ref, ALL)).toEqual([]);
  });

  it("what cannot be written is reported and lost, and later records are written", async () => {
    const timeline = openTimeline();
    const ref = refOf("broken");
    const pace = new RecordPace();
    timeline.add(ref, pace, record({ kind: null as never }));
    await timeline.flush();
    expect(failures).toHaveLength(1);
    timeline.add(ref, pace, record({ label: "later" }));
    expect(await timeline.list(ref, ALL)).toMatchObject([{ label: "later" }]);
    await timeline.close();
  });
});
