/** Usage by whom, from the rows of calls. */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ALL_TIME, DAY, HOUR, NOON, type OpenStorage, TestLog } from "./call-log-fixture.ts";
import type { UsageDimension } from "./usage-by.ts";
import { UsageByTotals } from "./usage-by.ts";
import { LATENCY_BUCKETS_MS } from "./usage.ts";

export function describeUsageBy(engine: string, openStorage: OpenStorage): void {
  describe(`usage by whom of a call log on ${engine}`, () => {
    let under: TestLog;
    beforeEach(async () => {
      under = await TestLog.open(openStorage);
    });
    afterEach(() => under.remove());

    const TOKEN: UsageDimension = { kind: "token" };
    const metadata = (key: string): UsageDimension => ({ kind: "metadata", key });
    const query = (dimensions: readonly UsageDimension[], rest: object = {}) => ({
      ...ALL_TIME,
      groupBy: [],
      dimensions,
      only: [],
      maxValues: 100,
      ...rest,
    });

    it("adds up by token, by metadata and by both, over days and gateways of one account", async () => {
      const of = (user: unknown, team = "t") => JSON.stringify({ user, team });
      under.record({ createdAt: NOON, tokenId: "a", metadata: of("ada"), tokensIn: 1, cost: 0.5 });
      under.record({ createdAt: NOON, tokenId: "a", metadata: of("bob"), tokensIn: 2, gatewayId: "other" });
      under.record({ createdAt: NOON - DAY, tokenId: "b", metadata: of("ada"), tokensIn: 4, success: false });
      under.record({ createdAt: NOON, tokenId: null, metadata: null, tokensIn: 8 });
      under.record({ createdAt: NOON, tokenId: "a", accountId: "foreign", tokensIn: 16 });
      const rows = async (dimensions: readonly UsageDimension[], rest: object = {}) =>
        (await under.log.summariseBy(query(dimensions, rest))).figures
          .map(({ labels, tokensIn }) => [...(labels ?? ["other"]), tokensIn])
          .sort((a, b) => Number(a.at(-1)) - Number(b.at(-1)));
      expect(await rows([TOKEN])).toEqual([
        ["a", 3],
        ["b", 4],
        [null, 8],
      ]);
      expect(await rows([metadata("user")])).toEqual([
        ["bob", 2],
        ["ada", 5],
        [null, 8],
      ]);
      expect(await rows([TOKEN, metadata("user")])).toEqual([
        ["a", "ada", 1],
        ["a", "bob", 2],
        ["b", "ada", 4],
        [null, null, 8],
      ]);
      expect(await rows([metadata("user")], { gatewayIds: ["other"] })).toEqual([["bob", 2]]);
      expect(await rows([metadata("user")], { only: [{ dimension: TOKEN, value: "a" }] })).toEqual([
        ["ada", 1],
        ["bob", 2],
      ]);
      expect(await rows([TOKEN], { only: [{ dimension: metadata("user"), value: null }] })).toEqual([
        [null, 8],
      ]);
      expect(await rows([], { only: [{ dimension: TOKEN, value: "a" }] })).toEqual([[3]]);
      expect(await rows([TOKEN], { from: NOON - HOUR })).toEqual([
        ["a", 3],
        [null, 8],
      ]);
    });

    it("adds up by minute, exactly from the start to the end", async () => {
      for (const offset of [0, 59_999, 60_000, 200_000, 300_000])
        under.record({ createdAt: NOON + offset, tokensIn: 1 });
      const rest = { groupBy: ["minute", "provider"], from: NOON + 1, to: NOON + 300_000 };
      const { figures } = await under.log.summariseBy(query([], rest));
      expect(figures.map(({ time, calls }) => [time, calls])).toEqual([
        [NOON, 1],
        [NOON + 60_000, 1],
        [NOON + 180_000, 1],
      ]);
    });

    it("shows numbers and booleans as text, and keys with dots", async () => {
      for (const value of [1, "1", true, 1.5, null])
        under.record({ createdAt: NOON, metadata: JSON.stringify({ "a.b": value }) });
      const { figures } = await under.log.summariseBy(query([metadata("a.b")]));
      expect(new Map(figures.map(({ labels, calls }) => [labels?.[0], calls]))).toEqual(
        new Map<string | null, number>([
          ["1", 2],
          ["1.5", 1],
          [null, 1],
          ["true", 1],
        ]),
      );
    });

    it("has the same sums and percentiles as the hourly usage, and times to first token of streams only", async () => {
      under.record({
        createdAt: NOON,
        durationMs: 3,
        firstByteMs: 2,
        responseContentType: "text/event-stream; charset=utf-8",
      });
      under.record({
        createdAt: NOON,
        durationMs: 700,
        firstByteMs: 300,
        responseContentType: "text/event-stream",
      });
      under.record({
        createdAt: NOON,
        durationMs: 999_999,
        firstByteMs: 400,
        responseContentType: "application/json",
      });
      under.record({
        createdAt: NOON,
        durationMs: 5,
        firstByteMs: null,
        responseContentType: "text/event-stream",
        success: false,
      });
      const [hourly] = await under.log.summarise({ ...ALL_TIME, groupBy: ["provider"] });
      const [rows] = (await under.log.summariseBy(query([TOKEN], { groupBy: ["provider"] }))).figures;
      const { labels, ...figures } = rows ?? {};
      expect(labels).toBeDefined();
      expect(figures).toEqual(hourly);
      expect(hourly?.firstToken.reduce((sum, count) => sum + count, 0)).toBe(2);
      expect(hourly?.firstToken[0]).toBe(1);
      expect(hourly?.firstToken[LATENCY_BUCKETS_MS.indexOf(500)]).toBe(1);
    });

    it("lists the values with the most calls, and adds up the others: no call is lost", async () => {
      for (let i = 0; i < 30; i++) {
        for (let n = 0; n <= i % 10; n++)
          under.record({ createdAt: NOON + n * HOUR, metadata: `{"user":"u${i}"}` });
      }
      const total = (await under.log.summarise({ ...ALL_TIME, groupBy: [] }))[0]?.calls;
      const by = await under.log.summariseBy(query([metadata("user")], { maxValues: 3, groupBy: ["hour"] }));
      expect(by.otherValues).toBe(27);
      expect(by.figures.reduce((sum, { calls }) => sum + calls, 0)).toBe(total);
      expect(new Set(by.figures.flatMap(({ labels }) => labels ?? []))).toEqual(
        new Set(["u9", "u19", "u29"]),
      );
      expect(by.countedFrom).toBeNull();
    });

    it("totals stay exact however many values there are", () => {
      const figures = (calls: number) => ({
        time: null,
        gatewayId: null,
        provider: null,
        model: null,
        calls,
        errors: 0,
        cached: 0,
        tokensIn: 0,
        tokensOut: 0,
        tokensInCached: 0,
        tokensOutReasoning: 0,
        cost: 0,
        durationMs: 0,
        latency: [calls],
        firstToken: [0],
      });
      const property = fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 60_000 }), fc.nat(5)), { maxLength: 300 }),
        fc.integer({ min: 1, max: 20 }),
        (adds, maxValues) => {
          const totals = new UsageByTotals(maxValues);
          for (const [value, calls] of adds) totals.add([String(value)], figures(calls));
          const { figures: found } = totals.finish(null);
          expect(found.reduce((sum, { calls }) => sum + calls, 0)).toBe(
            adds.reduce((sum, [, calls]) => sum + calls, 0),
          );
          expect(found.filter(({ labels }) => labels !== null).length).toBeLessThanOrEqual(maxValues);
        },
      );
      fc.assert(property);
      const many = new UsageByTotals(10);
      for (let i = 0; i < 50_000; i++) many.add([String(i)], figures(1));
      for (let i = 0; i < 5; i++) many.add(["often"], figures(100));
      const { figures: found, otherValues } = many.finish(null);
      expect(found.reduce((sum, { calls }) => sum + calls, 0)).toBe(50_500);
      expect(found[0]).toMatchObject({ labels: ["often"], calls: 500 });
      expect(otherValues).toBe(50_001 - 10);
      // Many figures of few values are bounded, too.
      const hourly = new UsageByTotals(10);
      for (let i = 0; i < 120_000; i++) hourly.add([String(i % 1500)], { ...figures(1), time: i });
      const hours = hourly.finish(null);
      expect(hours.figures.reduce((sum, { calls }) => sum + calls, 0)).toBe(120_000);
    });
  });
}
